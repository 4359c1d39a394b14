//! The cluster as its client sees it: connections kept, where the master and the catalogue are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use prost::Message;
use tokio::time::{Instant, timeout_at};

use crate::connection::{Address, Connection, Service};
use crate::error::{CallError, Error, Result};
use crate::locations::Locations;
use crate::options::HBaseOptions;
use crate::patience::random;
use crate::pb::cluster::{GetActiveMasterResponse, GetMetaRegionLocationsResponse, ServerName};
use crate::pb::rpc::Empty;
use crate::registrars::Registrars;
use crate::tally::{ServerTally, Tally};
use crate::zookeeper;

/// Everything that a client knows of a cluster; shared by its calls.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) options: HBaseOptions,
    pub(crate) locations: Locations,
    /// Names this client among those whose repeated changes a server tells apart.
    pub(crate) nonce_group: u64,
    pub(crate) tally: Tally,
    registry: Registry,
    /// Guards the connections' places; each place is locked by itself while it connects.
    connections: Mutex<HashMap<(Address, Service), Place>>,
    /// Guards what the registry said last.
    known: Mutex<Known>,
}

/// Who says where the master and the catalogue are.
#[derive(Debug)]
enum Registry {
    /// Masters, or region servers.
    Masters(Registrars),
    /// `ZooKeeper`'s servers.
    ZooKeeper(Registrars),
}

/// `ZooKeeper`'s port where none is told.
const ZOOKEEPER_PORT: u16 = 2181;

type Place = Arc<tokio::sync::Mutex<Option<Arc<Connection>>>>;

#[derive(Debug, Default)]
struct Known {
    master: Option<Address>,
    catalogue: Option<Address>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What it guards is whole after each change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cluster {
    /// A client that has asked nobody yet.
    ///
    /// # Errors
    /// As [`HBaseOptions::check`].
    pub(crate) fn new(options: HBaseOptions) -> Result<Self> {
        options.check_words()?;
        let read = |texts: &[String], port| -> Result<Registrars> {
            Ok(Registrars::new(texts.iter().map(|text| Address::parse_or(text, port)).collect::<Result<_>>()?))
        };
        let registry = match (options.masters.is_empty(), options.zookeeper.is_empty()) {
            (false, _) => Registry::Masters(read(&options.masters, None)?),
            (true, false) => Registry::ZooKeeper(read(&options.zookeeper, Some(ZOOKEEPER_PORT))?),
            (true, true) => {
                let reason = "neither masters nor ZooKeeper's servers are named".into();
                return Err(Error::Setting { what: "the cluster", reason });
            }
        };
        Ok(Self {
            options,
            locations: Locations::default(),
            nonce_group: random().max(1),
            tally: Tally::default(),
            registry,
            connections: Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// A number by which a server knows a change that it is told twice. Never 0, which is none.
    pub(crate) fn nonce() -> u64 {
        random().max(1)
    }

    /// One call to one server, by the connection that is there or a new one.
    ///
    /// # Errors
    /// [`CallError`]
    pub(crate) async fn call<A: Message + Default>(
        &self,
        to: (&Address, Service),
        method: &'static str,
        ask: &impl Message,
        cells: Bytes,
        deadline: Instant,
    ) -> std::result::Result<(A, Bytes), CallError> {
        let tally = self.tally.of(to.0);
        self.tally.call(method);
        let told = async {
            let connection = self.connection(to, deadline, &tally).await.map_err(CallError::Unsent)?;
            connection.call(method, ask, cells, deadline).await
        };
        let told = told.await;
        tally.ended(&told);
        told
    }

    async fn connection(
        &self,
        (address, service): (&Address, Service),
        deadline: Instant,
        tally: &Arc<ServerTally>,
    ) -> Result<Arc<Connection>> {
        let place = {
            let mut connections = lock(&self.connections);
            // Servers that are gone leave their places: connections that ended and that nobody opens.
            if connections.len() > CONNECTIONS_KEPT {
                connections.retain(|_, place| Arc::strong_count(place) > 1);
            }
            Arc::clone(connections.entry((address.clone(), service)).or_default())
        };
        // Whoever holds it connects, for as long as a call may take.
        let busy = |_| Error::Unreachable { what: address.to_string().into(), reason: "it takes no connection".into() };
        let mut held = timeout_at(deadline, place.lock()).await.map_err(busy)?;
        if let Some(connection) = held.as_ref().filter(|connection| !connection.is_ended()) {
            return Ok(Arc::clone(connection));
        }
        *held = None;
        let connection =
            Arc::new(Connection::open((address, service), Arc::clone(tally), &self.options, deadline).await?);
        *held = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Where the active master is.
    ///
    /// # Errors
    /// `Unreachable`
    pub(crate) async fn master(&self, deadline: Instant) -> Result<Address> {
        if let Some(master) = lock(&self.known).master.clone() {
            return Ok(master);
        }
        let master = match &self.registry {
            Registry::Masters(masters) => {
                let name = |told: GetActiveMasterResponse| told.server_name;
                self.ask(masters, ("GetActiveMaster", "the active master"), name, deadline).await?
            }
            Registry::ZooKeeper(quorum) => self.named(quorum, ("master", "the active master"), deadline).await?,
        };
        lock(&self.known).master = Some(master.clone());
        Ok(master)
    }

    /// Where the region of `hbase:meta` is, in which all others are told.
    ///
    /// # Errors
    /// `Unreachable`
    pub(crate) async fn catalogue(&self, deadline: Instant) -> Result<Address> {
        if let Some(catalogue) = lock(&self.known).catalogue.clone() {
            return Ok(catalogue);
        }
        let catalogue = match &self.registry {
            Registry::Masters(masters) => {
                let name = |told: GetMetaRegionLocationsResponse| {
                    let mut places = told.meta_locations.into_iter();
                    places.find(|place| place.region_info.replica_id.unwrap_or(0) == 0)?.server_name
                };
                self.ask(masters, ("GetMetaRegionLocations", "hbase:meta"), name, deadline).await?
            }
            Registry::ZooKeeper(quorum) => self.named(quorum, ("meta-region-server", "hbase:meta"), deadline).await?,
        };
        lock(&self.known).catalogue = Some(catalogue.clone());
        Ok(catalogue)
    }

    /// Asks anew where master and catalogue are, next time.
    pub(crate) fn forget_servers(&self) {
        *lock(&self.known) = Known::default();
    }

    async fn named(&self, quorum: &Registrars, (node, what): (&str, &str), deadline: Instant) -> Result<Address> {
        let path = format!("{}/{node}", self.options.zookeeper_root.trim_end_matches('/'));
        address(Some(zookeeper::named(quorum, &path, self.options.call_timeout / 4, deadline).await?))
            .ok_or_else(|| nobody(what))
    }

    /// Asks one after the other; the first that has a name is believed.
    async fn ask<A: Message + Default>(
        &self,
        masters: &Registrars,
        (method, what): (&'static str, &str),
        name: impl Fn(A) -> Option<ServerName>,
        deadline: Instant,
    ) -> Result<Address> {
        let mut last = nobody(what);
        for (others, master) in masters.in_turn() {
            // One that is frozen leaves time for the others, and for what is asked once they have answered.
            let left = deadline.saturating_duration_since(Instant::now());
            let until = Instant::now() + (left / (others + 1)).min(self.options.call_timeout / 4);
            match self.call((master, Service::Registry), method, &Empty {}, Bytes::new(), until).await {
                Ok((told, _)) => match address(name(told)) {
                    Some(address) => {
                        masters.believe(master);
                        return Ok(address);
                    }
                    None => last = nobody(what),
                },
                // Its masters ask for the same.
                Err(error) if error.is_final() => return Err(error.into_error()),
                Err(error) => {
                    let reason = error.into_error().to_string().into();
                    last = Error::Unreachable { what: format!("HBase's registry at {master}").into(), reason };
                }
            }
        }
        Err(last)
    }
}

/// Connections' places that are kept before those that nobody uses go.
const CONNECTIONS_KEPT: usize = 1024;

pub(crate) fn address(name: Option<ServerName>) -> Option<Address> {
    let name = name?;
    Some(Address { host: name.host_name.into(), port: u16::try_from(name.port?).ok()? })
}

fn nobody(what: &str) -> Error {
    Error::Unreachable { what: what.into(), reason: "nobody says where it is".into() }
}
