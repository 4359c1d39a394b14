//! The little of `ZooKeeper`'s protocol that finds a cluster: a session, one node's data, the end of the session.
//!
//! ```text
//! length i32 │ protocol i32 = 0, last zxid i64 = 0, timeout i32, session i64 = 0, password (16 bytes), read-only u8
//! length i32 │ xid i32, kind i32 = 4 (get data), path, watch u8 = 0      and the answer: xid i32, zxid i64, error i32, data
//! ```
//!
//! All numbers big-endian; strings and byte strings have their length before them. Source: `ZooKeeper`'s `zookeeper.jute`;
//! HBase's `RecoverableZooKeeper` for what stands before a node's data. No crate: those there are keep sessions, watches
//! and caches for what here is one question at a start or after a fail-over.

use std::io::{Error as IoError, ErrorKind, Result as IoResult};
use std::time::Duration;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::connection::Address;
use crate::error::{Error, Result};
use crate::pb::cluster::ServerName;
use crate::registrars::Registrars;

/// The session's own time-out; it is closed long before.
const SESSION_MS: i32 = 10_000;
const GET_DATA: i32 = 4;
const CLOSE_SESSION: i32 = -11;
const PASSWORD: [u8; 16] = [0; 16];
/// The first byte of a node that HBase wrote, before the writer's name.
const HBASE_MAGIC: u8 = 0xff;
const PROTOBUF_MAGIC: &[u8] = b"PBUF";
/// The longest answer that is read; `ZooKeeper`'s own bound of a node is 1 MiB.
const ANSWER_BYTES_MAX: usize = 2 << 20;

/// `Master` and `MetaRegionServer`: a server's name first.
#[derive(Clone, PartialEq, Eq, Message)]
struct Told {
    #[prost(message, required, tag = "1")]
    server: ServerName,
}

/// Who is named by a node of HBase's. Each server is waited for up to `each`.
///
/// # Errors
/// `Unreachable`: no server of the quorum answers, or none has such a node. `Malformed`
pub(crate) async fn named(quorum: &Registrars, path: &str, each: Duration, deadline: Instant) -> Result<ServerName> {
    let mut last = Error::Unreachable { what: "ZooKeeper".into(), reason: "no server of it is named".into() };
    for (left, address) in quorum.in_turn() {
        // One that is frozen leaves time for the others.
        let until = Instant::now() + (deadline.saturating_duration_since(Instant::now()) / left).min(each);
        let unreachable = |reason: String| Error::Unreachable {
            what: format!("ZooKeeper at {address}").into(),
            reason: reason.into(),
        };
        last = match timeout_at(until, read(address, path)).await {
            Ok(Ok(data)) => {
                quorum.believe(address);
                return server(data);
            }
            Ok(Err(cause)) => unreachable(format!("{path}: {cause}")),
            Err(_) => unreachable("nothing answered in time".to_owned()),
        };
    }
    Err(last)
}

fn server(mut data: Bytes) -> Result<ServerName> {
    let wrong = |reason: &str| Error::malformed("a node of ZooKeeper's", reason);
    if data.first() == Some(&HBASE_MAGIC) {
        data.advance(1);
        let length = data.try_get_u32().map_err(|_| wrong("it ends early"))? as usize;
        if length > data.len() {
            return Err(wrong("it ends early"));
        }
        data.advance(length);
    }
    let message = data.strip_prefix(PROTOBUF_MAGIC).ok_or_else(|| wrong("it is not in protobuf"))?;
    let server = Told::decode(message).map_err(|cause| wrong(&cause.to_string()))?.server;
    // Fields that are missing come empty.
    if server.host_name.is_empty() || server.port.is_none() {
        return Err(wrong("it names no server"));
    }
    Ok(server)
}

async fn read(address: &Address, path: &str) -> IoResult<Bytes> {
    let mut stream = TcpStream::connect((&*address.host, address.port)).await?;
    let mut hello = BytesMut::new();
    hello.put_i32(0);
    hello.put_i64(0);
    hello.put_i32(SESSION_MS);
    hello.put_i64(0);
    put_bytes(&mut hello, &PASSWORD);
    hello.put_u8(0);
    send(&mut stream, &hello).await?;
    receive(&mut stream).await?;
    let mut ask = BytesMut::new();
    ask.put_i32(1);
    ask.put_i32(GET_DATA);
    put_bytes(&mut ask, path.as_bytes());
    ask.put_u8(0);
    send(&mut stream, &ask).await?;
    let data = data(receive(&mut stream).await?)?;
    let mut end = BytesMut::new();
    end.put_i32(2);
    end.put_i32(CLOSE_SESSION);
    send(&mut stream, &end).await?;
    Ok(data)
}

/// The data of an answer.
fn data(mut answer: Bytes) -> IoResult<Bytes> {
    let (_xid, _zxid) = (answer.try_get_i32()?, answer.try_get_i64()?);
    match answer.try_get_i32()? {
        0 => {}
        -101 => return Err(IoError::new(ErrorKind::NotFound, "there is no such node")),
        error => return Err(IoError::other(format!("it answers error {error}"))),
    }
    let length = usize::try_from(answer.try_get_i32()?).unwrap_or(0);
    if length > answer.len() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(answer.split_to(length))
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.put_slice(bytes);
}

async fn send(stream: &mut TcpStream, body: &[u8]) -> IoResult<()> {
    let mut frame = BytesMut::with_capacity(4 + body.len());
    put_bytes(&mut frame, body);
    stream.write_all(&frame).await
}

async fn receive(stream: &mut TcpStream) -> IoResult<Bytes> {
    let length = stream.read_u32().await? as usize;
    if length > ANSWER_BYTES_MAX {
        return Err(IoError::other(format!("an answer of {length} bytes is announced")));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    Ok(answer.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// A node as HBase 2.6 writes it: magic, the writer's name, `PBUF`, the message.
    fn node() -> Bytes {
        let told = Told { server: ServerName { host_name: "localhost".to_owned(), port: Some(16020) } };
        let mut node = BytesMut::new();
        node.put_u8(HBASE_MAGIC);
        put_bytes(&mut node, b"master:16000");
        node.put_slice(PROTOBUF_MAGIC);
        node.put_slice(&told.encode_to_vec());
        node.freeze()
    }

    async fn zookeeper(error: i32) -> Address {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                assert_eq!(receive(&mut stream).await.unwrap().len(), 45);
                send(&mut stream, &[0; 37]).await.unwrap();
                let ask = receive(&mut stream).await.unwrap();
                assert!(ask.ends_with(b"\0\0\0\x0d/hbase/master\0"));
                let mut answer = BytesMut::new();
                answer.put_i32(1);
                answer.put_i64(9);
                answer.put_i32(error);
                put_bytes(&mut answer, &node());
                send(&mut stream, &answer).await.unwrap();
                let _end = receive(&mut stream).await;
            }
        });
        Address { host: "127.0.0.1".into(), port }
    }

    #[tokio::test]
    async fn the_first_server_that_knows_is_believed() {
        let (silent, knowing) = (zookeeper(-101).await, zookeeper(0).await);
        let (each, soon) = (Duration::from_secs(20), Instant::now() + Duration::from_secs(20));
        let both = Registrars::new(vec![silent.clone(), knowing]);
        let told = named(&both, "/hbase/master", each, soon).await.unwrap();
        assert_eq!((&*told.host_name, told.port), ("localhost", Some(16020)));
        let error = named(&Registrars::new(vec![silent]), "/hbase/master", each, soon).await.unwrap_err();
        assert!(error.to_string().contains("no such node"), "{error}");
    }

    /// As of a machine that is off: it is waited for once, for its share, and not again by each question.
    #[tokio::test]
    async fn a_silent_server_is_asked_last_once_another_has_answered() {
        let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let both = Registrars::new(vec![Address { host: "127.0.0.1".into(), port }, zookeeper(0).await]);
        let each = Duration::from_secs(20);
        let told =
            timeout_at(Instant::now() + each * 2, named(&both, "/hbase/master", each, Instant::now() + each * 9));
        let waited = async {
            let held = silent.accept().await.unwrap();
            crate::tests::pass(each).await;
            held
        };
        let (told, _held) = tokio::join!(told, waited);
        assert_eq!(told.expect("it has no more than its share").unwrap().port, Some(16020));
        tokio::select! {
            biased;
            told = named(&both, "/hbase/master", each, Instant::now() + each) => assert_eq!(told.unwrap().port, Some(16020)),
            _ = silent.accept() => panic!("it is asked first again"),
        }
    }

    /// Bytes from outside never panic.
    #[test]
    fn what_is_no_node_is_malformed() {
        let whole = node();
        assert!(server(whole.clone()).is_ok());
        for end in 0..whole.len() {
            assert!(server(whole.slice(..end)).is_err(), "{end} bytes");
        }
        assert!(data(Bytes::from_static(&[0; 17])).is_err());
    }
}
