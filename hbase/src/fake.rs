//! A server that speaks HBase's frames and does what a test says: registry, catalogue and regions in one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use basalt_store::{CellKind, CellMutation, TableName, Timestamp};
use bytes::{Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::cells;
use crate::cluster::Cluster;
use crate::options::HBaseOptions;
use crate::pb::client::{CellResult, MultiRequest, MultiResponse, RegionActionResult, ResultOrException};
use crate::pb::client::{ScanRequest, ScanResponse};
use crate::pb::cluster::{
    GetActiveMasterResponse, GetMetaRegionLocationsResponse, RegionInfo, RegionLocation, ServerName, TableState,
};
use crate::pb::rpc::{CellBlockMeta, ConnectionHeader, ExceptionResponse, RequestHeader, ResponseHeader};

/// Longest that a test waits for what must come.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A call as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) parameter: Bytes,
    /// Milliseconds that its caller waits.
    pub(crate) timeout: u32,
}

impl Asked {
    pub(crate) fn read<M: Message + Default>(&self) -> M {
        M::decode(self.parameter.clone()).unwrap()
    }
}

/// What is done about a call.
#[derive(Debug, Clone)]
pub(crate) enum Does {
    Answer(Bytes, Bytes),
    Refuse(&'static str),
    /// Nothing ever comes.
    Silence,
    /// The connection is closed.
    Close,
    /// Answers after the next call is answered.
    After(Bytes),
}

impl Does {
    pub(crate) fn answer(message: &impl Message) -> Self {
        Self::Answer(message.encode_to_vec().into(), Bytes::new())
    }

    /// The answer to a batch of plain puts: all are done.
    pub(crate) fn all_done(asked: &Asked) -> Self {
        let ask: MultiRequest = asked.read();
        let done =
            |index: Option<u32>| ResultOrException { index, result: Some(CellResult::default()), exception: None };
        let results = ask.region_action.iter().map(|region| RegionActionResult {
            result_or_exception: region.action.iter().map(|action| done(action.index)).collect(),
            exception: None,
        });
        Self::answer(&MultiResponse { region_action_result: results.collect(), processed: None })
    }
}

type Script = Box<dyn FnMut(&Asked) -> Does + Send>;

/// What the server knows and was asked.
pub(crate) struct World {
    /// The table's state as the catalogue has it; 0 is enabled.
    pub(crate) state: Option<i32>,
    /// Start keys of the table's regions, and the port each is at.
    pub(crate) regions: Vec<(&'static str, u16)>,
    /// When their servers began.
    servers_began: u64,
    /// Everything but what is about the catalogue.
    pub(crate) asked: Vec<Asked>,
    pub(crate) catalogue_reads: usize,
    pub(crate) connections: usize,
    /// It asks for a login, and takes nobody who only tells a name.
    pub(crate) asks_for_login: bool,
    /// The catalogue is not answered for.
    pub(crate) is_frozen: bool,
    /// How often the catalogue is said to be elsewhere before it is answered for.
    pub(crate) refusals: u32,
    /// The ports that the registry tells of the active master and of the catalogue's server; `None`: it has no name for it.
    pub(crate) master_at: Option<u16>,
    pub(crate) catalogue_at: Option<u16>,
    /// What the catalogue answers cannot be read, and more is to come.
    pub(crate) is_garbled: bool,
    script: Script,
    held: VecDeque<(u32, Bytes)>,
}

/// A server on a port of the system's choosing; it ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Fake {
    pub(crate) port: u16,
    pub(crate) world: Arc<Mutex<World>>,
}

pub(crate) fn table() -> TableName {
    "t".parse().unwrap()
}

impl Fake {
    /// One region of one table, all of whose calls go by the script.
    pub(crate) async fn start(script: impl FnMut(&Asked) -> Does + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let world = World {
            state: Some(0),
            regions: vec![("", port)],
            servers_began: 1,
            asked: Vec::new(),
            catalogue_reads: 0,
            connections: 0,
            asks_for_login: false,
            is_frozen: false,
            refusals: 0,
            master_at: Some(port),
            catalogue_at: Some(port),
            is_garbled: false,
            script: Box::new(script),
            held: VecDeque::new(),
        };
        let fake = Self { port, world: Arc::new(Mutex::new(world)) };
        let server = fake.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                server.world.lock().unwrap().connections += 1;
                tokio::spawn(server.clone().serve(stream));
            }
        });
        fake
    }

    /// A client of it that hardly pauses. What it waits for in vain takes long: the test moves the clock.
    pub(crate) fn client(&self) -> Arc<Cluster> {
        let mut options = HBaseOptions::of_masters([format!("127.0.0.1:{}", self.port)]);
        (options.pause, options.busy_pause) = (Duration::from_millis(1), Duration::from_millis(1));
        (options.call_timeout, options.operation_timeout) = (SOON, SOON * 3);
        Arc::new(Cluster::new(options).unwrap())
    }

    /// How often a method was called.
    pub(crate) fn calls(&self, method: &str) -> Vec<Asked> {
        let world = self.world.lock().unwrap();
        world.asked.iter().filter(|asked| asked.method == method).cloned().collect()
    }

    async fn serve(self, stream: TcpStream) {
        let (mut input, mut output) = stream.into_split();
        let mut magic = [0; 6];
        input.read_exact(&mut magic).await.unwrap();
        assert_eq!(&magic, b"HBas\x00\x50");
        if self.world.lock().unwrap().asks_for_login {
            // As HBase 2.6.4 does (`ServerRpcConnection.processPreamble`): call -1 is all of them.
            let refusal = refusal(u32::MAX, "security.AccessDeniedException: Authentication is required");
            return output.write_all(&refusal).await.unwrap();
        }
        let header = ConnectionHeader::decode(frame(&mut input).await.unwrap()).unwrap();
        assert!(header.service_name.is_some_and(|name| name.ends_with("Service")));
        let (replies, mut outgoing) = mpsc::channel::<Bytes>(64);
        tokio::spawn(async move {
            while let Some(reply) = outgoing.recv().await {
                if output.write_all(&reply).await.is_err() {
                    return;
                }
            }
        });
        while let Some(mut request) = frame(&mut input).await {
            let header = RequestHeader::decode_length_delimited(&mut request).unwrap();
            let length = prost::decode_length_delimiter(&mut request).unwrap();
            let parameter = request.split_to(length);
            let (method, timeout) = (header.method_name.unwrap(), header.timeout.unwrap());
            let asked = Asked { method, parameter, timeout };
            let (id, does) = (header.call_id.unwrap(), self.does(&asked));
            let mut out = Vec::new();
            match does {
                Does::Close => return,
                Does::Silence => continue,
                Does::Refuse(class) => out.push(refusal(id, class)),
                Does::After(message) => {
                    self.world.lock().unwrap().held.push_back((id, message));
                    continue;
                }
                Does::Answer(message, cells) => {
                    out.push(reply(id, &message, &cells));
                    out.extend(self.world.lock().unwrap().held.drain(..).map(|(id, message)| reply(id, &message, b"")));
                }
            }
            for reply in out {
                if replies.send(reply).await.is_err() {
                    return;
                }
            }
        }
    }

    fn does(&self, asked: &Asked) -> Does {
        let mut world = self.world.lock().unwrap();
        let name = |port: u16| ServerName { host_name: "127.0.0.1".to_owned(), port: Some(port.into()) };
        match &*asked.method {
            "GetActiveMaster" => Does::answer(&GetActiveMasterResponse { server_name: world.master_at.map(name) }),
            "GetMetaRegionLocations" => {
                let place = |name| RegionLocation { region_info: RegionInfo::default(), server_name: Some(name) };
                let meta_locations = world.catalogue_at.map(name).map(place).into_iter().collect();
                Does::answer(&GetMetaRegionLocationsResponse { meta_locations })
            }
            "Scan" if is_about_catalogue(asked) && world.is_frozen => Does::Silence,
            "Scan" if is_about_catalogue(asked) && world.refusals > 0 => {
                world.refusals -= 1;
                Does::Refuse("NotServingRegionException")
            }
            "Scan" if is_about_catalogue(asked) && world.is_garbled => {
                let told =
                    ScanResponse { scanner_id: Some(5), more_results_in_region: Some(true), ..ScanResponse::default() };
                Does::Answer(told.encode_to_vec().into(), Bytes::from_static(b"no cell"))
            }
            "Scan" if is_about_catalogue(asked) => world.catalogue(asked),
            _ => {
                world.asked.push(asked.clone());
                (world.script)(asked)
            }
        }
    }
}

fn is_about_catalogue(asked: &Asked) -> bool {
    let ask: ScanRequest = asked.read();
    ask.region.is_some_and(|region| &region.value[..] == b"hbase:meta,,1")
}

impl World {
    /// Has the catalogue say that the regions are at these ports, of servers that began then.
    pub(crate) fn put_regions(&mut self, began: u64, regions: Vec<(&'static str, u16)>) {
        (self.servers_began, self.regions) = (began, regions);
    }

    fn catalogue(&mut self, asked: &Asked) -> Does {
        let ask: ScanRequest = asked.read();
        let family = ask.scan.unwrap().column[0].family.clone();
        let (mut block, mut told) = (BytesMut::new(), ScanResponse::default());
        let mut push = |row: &[u8], qualifier: &[u8], value: &[u8]| {
            let (timestamp, kind) = (Some(Timestamp(1)), CellKind::Put);
            let cell = CellMutation { family: &family, family_index: 0, qualifier, timestamp, kind, value };
            cells::encode(row, &cell, &mut block).unwrap();
        };
        if &family[..] == b"table" {
            if let Some(state) = self.state {
                push(b"t", b"state", &TableState { state }.encode_to_vec());
                told.cells_per_result.push(1);
            }
        } else {
            self.catalogue_reads += 1;
            for (at, (start, port)) in self.regions.iter().enumerate() {
                let end = self.regions.get(at + 1).map_or("", |(start, _)| start);
                let info = RegionInfo {
                    region_id: 1,
                    start_key: Some(Bytes::from_static(start.as_bytes())),
                    end_key: Some(Bytes::from_static(end.as_bytes())),
                    ..RegionInfo::default()
                };
                let row = format!("t,{start},1.00000000000000000000000000000000.");
                push(row.as_bytes(), b"regioninfo", &[b"PBUF", &info.encode_to_vec()[..]].concat());
                push(row.as_bytes(), b"server", format!("127.0.0.1:{port}").as_bytes());
                push(row.as_bytes(), b"serverstartcode", &self.servers_began.to_be_bytes());
                told.cells_per_result.push(3);
            }
        }
        told.more_results_in_region = Some(false);
        Does::Answer(told.encode_to_vec().into(), block.freeze())
    }
}

async fn frame(input: &mut OwnedReadHalf) -> Option<Bytes> {
    let length = input.read_u32().await.ok()?;
    let mut frame = vec![0; length as usize];
    input.read_exact(&mut frame).await.ok()?;
    Some(frame.into())
}

fn reply(id: u32, message: &[u8], cells: &[u8]) -> Bytes {
    let cell_block_meta = (!cells.is_empty()).then(|| CellBlockMeta { length: cells.len().try_into().ok() });
    let header = ResponseHeader { call_id: Some(id), exception: None, cell_block_meta };
    let mut body = header.encode_length_delimited_to_vec();
    prost::encode_length_delimiter(message.len(), &mut body).unwrap();
    body.extend(message);
    body.extend(cells);
    framed(&body)
}

/// A class of HBase's, and after a colon what it says.
fn refusal(id: u32, class: &str) -> Bytes {
    let (class, words) = class.split_once(": ").map_or((class, None), |(class, words)| (class, Some(words)));
    let exception = ExceptionResponse {
        exception_class_name: Some(format!("org.apache.hadoop.hbase.{class}")),
        stack_trace: words.map(str::to_owned),
        do_not_retry: None,
    };
    let header = ResponseHeader { call_id: Some(id), exception: Some(exception), cell_block_meta: None };
    framed(&header.encode_length_delimited_to_vec())
}

fn framed(body: &[u8]) -> Bytes {
    [&u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat().into()
}
