//! The frames of HBase's RPC: bytes in, types out; no socket.
//!
//! ```text
//! request   length u32 │ delimited RequestHeader  │ delimited parameter │ cell block
//! answer    length u32 │ delimited ResponseHeader │ delimited answer    │ cell block
//! ```
//!
//! All numbers big-endian; `delimited` is protobuf's varint length before the message. Source: HBase's `IPCUtil`.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;

use crate::error::{Error, Result};
use crate::exception::Exception;
use crate::pb::rpc::{CellBlockMeta, ConnectionHeader, RequestHeader, ResponseHeader, UserInformation, VersionInfo};

/// Magic, version 0, and the authentication that trusts the name it is told.
const PREAMBLE: &[u8; 6] = b"HBas\x00\x50";
/// How cells are framed beside the messages.
const CELL_CODEC: &str = "org.apache.hadoop.hbase.codec.KeyValueCodec";
/// The largest request taken by a server that nobody set otherwise (`hbase.ipc.max.request.size`).
const REQUEST_BYTES_MAX: usize = 256 << 20;
/// The longest answer that is read: a bound against a peer that is no HBase.
pub(crate) const ANSWER_BYTES_MAX: usize = 512 << 20;

/// What a client says first.
pub(crate) fn preamble(user: &str, service: &str) -> Bytes {
    let version = VersionInfo {
        // Servers look at the numbers alone: from 1.3 on gets are answered by cell block.
        version: "2.6.4".to_owned(),
        url: String::new(),
        revision: String::new(),
        user: String::new(),
        date: String::new(),
        src_checksum: String::new(),
        version_major: Some(2),
        version_minor: Some(6),
    };
    let header = ConnectionHeader {
        user_info: Some(UserInformation { effective_user: user.to_owned() }),
        service_name: Some(service.to_owned()),
        cell_block_codec_class: Some(CELL_CODEC.to_owned()),
        version_info: Some(version),
    };
    let header = header.encode_to_vec();
    let mut out = BytesMut::with_capacity(PREAMBLE.len() + 4 + header.len());
    out.put_slice(PREAMBLE);
    out.put_u32(u32::try_from(header.len()).unwrap_or(u32::MAX));
    out.put_slice(&header);
    out.freeze()
}

/// A request on its way: the messages, and the cells after them.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) head: Bytes,
    pub(crate) cells: Bytes,
}

impl Request {
    /// Bytes of both.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.cells.len()
    }
}

/// Builds a request.
///
/// # Errors
/// [`Error::TooLarge`]
pub(crate) fn request(
    call_id: u32,
    method: &'static str,
    timeout_ms: u32,
    parameter: &impl Message,
    cells: Bytes,
) -> Result<Request> {
    let cells_len = u32::try_from(cells.len()).map_err(|_| too_large(cells.len()))?;
    let header = RequestHeader {
        call_id: Some(call_id),
        method_name: Some(method.to_owned()),
        request_param: Some(true),
        cell_block_meta: (cells_len > 0).then_some(CellBlockMeta { length: Some(cells_len) }),
        timeout: Some(timeout_ms),
    };
    let (header_len, parameter_len) = (header.encoded_len(), parameter.encoded_len());
    let head_len = delimited(header_len) + delimited(parameter_len);
    let len = head_len + cells.len();
    if len > REQUEST_BYTES_MAX {
        return Err(too_large(len));
    }
    let mut head = BytesMut::with_capacity(4 + head_len);
    head.put_u32(u32::try_from(len).map_err(|_| too_large(len))?);
    let encode = |_| Error::malformed("a request", "a message outgrew its own length");
    header.encode_length_delimited(&mut head).map_err(encode)?;
    parameter.encode_length_delimited(&mut head).map_err(encode)?;
    Ok(Request { head: head.freeze(), cells })
}

fn too_large(len: usize) -> Error {
    Error::TooLarge { what: "a request", bytes: len as u64, limit: REQUEST_BYTES_MAX as u64 }
}

fn delimited(len: usize) -> usize {
    prost::length_delimiter_len(len) + len
}

/// What came back, or the exception instead of it.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Which call; `None` where the server speaks of the connection.
    pub(crate) call_id: Option<u32>,
    /// The answer's message, delimited, and the cell block after it.
    pub(crate) body: std::result::Result<Body, Exception>,
}

/// An answer's message, not yet read, and its cells.
#[derive(Debug)]
pub(crate) struct Body {
    rest: Bytes,
    cells_len: usize,
}

impl Answer {
    /// Reads the frame after its length.
    ///
    /// # Errors
    /// `Malformed`
    pub(crate) fn decode(mut frame: Bytes) -> Result<Self> {
        let wrong = |reason: prost::DecodeError| Error::malformed("the header", reason.to_string());
        let header = ResponseHeader::decode_length_delimited(&mut frame).map_err(wrong)?;
        if let Some(exception) = &header.exception {
            return Ok(Self { call_id: header.call_id, body: Err(Exception::of_call(exception)) });
        }
        let cells_len = header.cell_block_meta.and_then(|meta| meta.length).unwrap_or(0) as usize;
        if cells_len > frame.len() {
            let reason = format!("{cells_len} bytes are announced and {} are there", frame.len());
            return Err(Error::malformed("the cell block", reason));
        }
        Ok(Self { call_id: header.call_id, body: Ok(Body { rest: frame, cells_len }) })
    }
}

impl Body {
    /// Reads the message, and hands over the cell block.
    ///
    /// # Errors
    /// `Malformed`
    pub(crate) fn read<A: Message + Default>(self) -> Result<(A, Bytes)> {
        let Self { mut rest, cells_len } = self;
        let cells = rest.split_off(rest.len().saturating_sub(cells_len));
        let wrong = |reason: prost::DecodeError| Error::malformed("the message", reason.to_string());
        Ok((A::decode_length_delimited(&mut rest).map_err(wrong)?, cells))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pb::cluster::GetRegionLoadRequest;
    use crate::pb::rpc::{Empty, ExceptionResponse};

    #[test]
    fn a_request_is_its_length_two_messages_and_the_cells() {
        let ask = GetRegionLoadRequest { table_name: None };
        let request = request(7, "Get", 1000, &ask, Bytes::from_static(b"cells")).unwrap();
        let mut head = request.head.clone();
        let length = bytes::Buf::get_u32(&mut head) as usize;
        assert_eq!(length + 4, request.len());
        let header = RequestHeader::decode_length_delimited(&mut head).unwrap();
        assert_eq!((header.call_id, header.timeout), (Some(7), Some(1000)));
        assert_eq!(header.cell_block_meta.unwrap().length, Some(5));
        assert_eq!(GetRegionLoadRequest::decode_length_delimited(&mut head).unwrap(), ask);
        assert!(head.is_empty());
    }

    #[test]
    fn an_answer_is_read_back_with_its_cells() {
        let header = ResponseHeader {
            call_id: Some(3),
            exception: None,
            cell_block_meta: Some(CellBlockMeta { length: Some(4) }),
        };
        let mut frame = header.encode_length_delimited_to_vec();
        frame.extend(Empty {}.encode_length_delimited_to_vec());
        frame.extend(b"cell");
        let answer = Answer::decode(frame.into()).unwrap();
        assert_eq!(answer.call_id, Some(3));
        let (_, cells): (Empty, _) = answer.body.unwrap().read().unwrap();
        assert_eq!(&cells[..], b"cell");
    }

    #[test]
    fn an_exception_stands_in_the_answers_place() {
        let exception = ExceptionResponse {
            exception_class_name: Some("a.b.CallQueueTooBigException".to_owned()),
            stack_trace: None,
            do_not_retry: None,
        };
        let header = ResponseHeader { call_id: Some(3), exception: Some(exception), cell_block_meta: None };
        let answer = Answer::decode(header.encode_length_delimited_to_vec().into()).unwrap();
        assert_eq!(&*answer.body.unwrap_err().class, "CallQueueTooBigException");
    }

    /// Bytes from outside never panic: each beginning of an answer, and lengths that lie.
    #[test]
    fn what_is_no_answer_is_malformed() {
        let header = ResponseHeader { call_id: Some(3), exception: None, cell_block_meta: None };
        let mut whole = header.encode_length_delimited_to_vec();
        whole.push(9);
        let answer = Answer::decode(whole.clone().into()).unwrap();
        assert!(answer.body.unwrap().read::<Empty>().is_err());
        assert!(Answer::decode(Bytes::new()).is_err());
        assert!(Answer::decode(Bytes::copy_from_slice(&whole[..2])).is_err());
        let lies = ResponseHeader {
            call_id: Some(3),
            exception: None,
            cell_block_meta: Some(CellBlockMeta { length: Some(u32::MAX) }),
        };
        assert!(Answer::decode(lies.encode_length_delimited_to_vec().into()).is_err());
    }
}
