// SPDX-License-Identifier: MIT OR Apache-2.0
//! Minimal clients of the real servers that a scenario may run. A client sends one request at a time over a
//! local socket and times it until its answer arrives, so that a stall of the server is measured from the
//! client's side. Redis speaks RESP, MariaDB its client protocol with text queries; both are implemented only
//! as far as needed.

use super::clock::{later, now};
use super::error::StepError;
use super::measure::Timed;
use super::runner::Hand;
use super::stop::Stop;
use floodline_record::units::Nanos;
use floodline_scenario::{Random, Step};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};

/// Time that a server has to create its socket.
const CONNECT_WAIT: Nanos = Nanos(60 * Nanos::SECOND.0);

/// A connection to a server.
#[derive(Debug)]
pub(super) enum Server {
    /// A syslog socket.
    Syslog(UnixDatagram),
    /// A Redis.
    Redis(BufReader<UnixStream>),
    /// A MariaDB.
    Sql(BufReader<UnixStream>),
}

impl Server {
    /// Connects to the server of a step; `None` if the task has to stop before the server is up.
    fn of(step: &Step, stop: &Stop) -> Result<Option<Server>, StepError> {
        Ok(match step {
            Step::RedisSet(step) => connect(&step.socket, stop)?.map(Server::Redis),
            Step::Sql(step) => {
                let Some(mut server) = connect(&step.socket, stop)? else { return Ok(None) };
                log_in(&mut server).map_err(|error| StepError::call("log in at", &step.socket, error))?;
                Some(Server::Sql(server))
            }
            Step::Syslog(step) => {
                let socket = UnixDatagram::unbound().map_err(|error| StepError::call("socket", &step.socket, error))?;
                socket.connect(&step.socket).map_err(|error| StepError::call("connect", &step.socket, error))?;
                Some(Server::Syslog(socket))
            }
            _ => return Err(StepError::Senseless(format!("{} has no server", step.verb()))),
        })
    }
}

impl Hand<'_> {
    /// Sends one request. A failure after the end of the workload is ignored: the server has been stopped. Returns
    /// false if the task has to stop.
    pub(super) fn request(&mut self, step: &Step, is_first: bool) -> Result<bool, StepError> {
        if is_first {
            self.server = Server::of(step, self.stop)?;
        }
        let Some(server) = &mut self.server else { return Ok(false) };
        let content = &mut self.content;
        let (made, socket) = match (step, server) {
            (Step::Syslog(step), Server::Syslog(socket)) => {
                let message = message(step.pri(), step.message.bytes(), content);
                let sent = self.measures.time("syslog", step.message.bytes(), || socket.send(&message));
                (sent.map(|_| ()), &step.socket)
            }
            (Step::RedisSet(step), Server::Redis(server)) => {
                let mut value = vec![0; usize::try_from(step.value.bytes()).unwrap_or(0)];
                content.fill(&mut value);
                let command = set_command(content.below(step.keys), &value);
                let made = self.measures.time("redis_set", step.value.bytes(), || {
                    server.get_mut().write_all(&command)?;
                    set_answer(server)
                });
                (made, &step.socket)
            }
            (Step::Sql(step), Server::Sql(server)) => {
                (self.measures.time("sql", 0, || query(server, &step.statement)), &step.socket)
            }
            _ => return Err(StepError::Senseless(format!("{} has another server", step.verb()))),
        };
        match made {
            Ok(()) => Ok(true),
            Err(_) if self.stop.is_due() => Ok(false),
            Err(error) => Err(StepError::call("request to", socket, error)),
        }
    }
}

/// Returns a syslog message with a new random printable text.
fn message(pri: u8, length: u64, random: &mut Random) -> Vec<u8> {
    let text = std::iter::from_fn(|| Some(b'a' + u8::try_from(random.below(26)).unwrap_or(0)));
    format!("<{pri}>x: ").into_bytes().into_iter().chain(text).take(usize::try_from(length).unwrap_or(0)).collect()
}

/// Connects as soon as the server is up; `None` if the task has to stop before that.
fn connect(socket: &str, stop: &Stop) -> Result<Option<BufReader<UnixStream>>, StepError> {
    let deadline = later(now(), CONNECT_WAIT);
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(Some(BufReader::new(stream))),
            Err(error) => {
                let is_early = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
                if !is_early || now() >= deadline {
                    return Err(StepError::call("connect", socket, error));
                }
            }
        }
        if stop.sleep_until(later(now(), Nanos::from_millis(50))) {
            return Ok(None);
        }
    }
}

/// `SET key:N VALUE` as an array of bulk strings.
fn set_command(key: u64, value: &[u8]) -> Vec<u8> {
    let key = format!("key:{key}");
    let mut command = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n", key.len(), value.len()).into_bytes();
    command.extend_from_slice(value);
    command.extend_from_slice(b"\r\n");
    command
}

/// Reads the answer to a SET: `+OK`, or `-` and the error.
fn set_answer(server: &mut impl BufRead) -> io::Result<()> {
    let mut line = Vec::new();
    // Long enough for any error. An endless answer cannot exhaust memory.
    if Read::take(server, 4096).read_until(b'\n', &mut line)? == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    match line.split_first() {
        Some((b'+', _)) => Ok(()),
        _ => Err(io::Error::other(printable(&line))),
    }
}

/// Client capabilities: long password, 4.1 protocol, its authentication, named authentication plugins.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x8000 | 0x8_0000;
/// Character set `utf8mb3_general_ci`.
const CHARSET: u8 = 33;
/// First bytes of packets.
const OK: u8 = 0x00;
const ERROR: u8 = 0xff;
const OTHER_WAY: u8 = 0xfe;
const COM_QUERY: u8 = 0x03;
/// A packet of this length continues in the next one.
const PACKET_MAX: usize = 0xff_ffff;

/// Logs in as root without a password: the server runs without grant tables.
fn log_in<S: Read + Write>(server: &mut BufReader<S>) -> io::Result<()> {
    let (number, greeting) = packet(server)?;
    if greeting.first() == Some(&ERROR) {
        return Err(refusal(&greeting));
    }
    let mut answer = CAPABILITIES.to_le_bytes().to_vec();
    answer.extend_from_slice(&0x0100_0000_u32.to_le_bytes());
    answer.push(CHARSET);
    answer.extend_from_slice(&[0; 23]);
    answer.extend_from_slice(b"root\0\0mysql_native_password\0");
    send(server.get_mut(), number.wrapping_add(1), &answer)?;
    loop {
        let (number, reply) = packet(server)?;
        match reply.first() {
            Some(&OK) => return Ok(()),
            // The server requests another authentication plugin. Without a password, each of them starts with an
            // empty packet.
            Some(&OTHER_WAY) => send(server.get_mut(), number.wrapping_add(1), &[])?,
            _ => return Err(refusal(&reply)),
        }
    }
}

/// Sends a statement and waits for its answer.
fn query<S: Read + Write>(server: &mut BufReader<S>, statement: &str) -> io::Result<()> {
    let mut command = vec![COM_QUERY];
    command.extend_from_slice(statement.as_bytes());
    send(server.get_mut(), 0, &command)?;
    let (_, reply) = packet(server)?;
    match reply.first() {
        Some(&OK) => Ok(()),
        Some(&ERROR) => Err(refusal(&reply)),
        _ => Err(io::Error::other("the statement answers with rows; only those that do not can be sent")),
    }
}

/// Reads one packet: number and content.
fn packet(server: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    server.read_exact(&mut header)?;
    let [low, middle, high, number] = header;
    let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
    let mut content = Vec::new();
    // `take` limits the read without allocating the untrusted length.
    Read::take(server, length as u64).read_to_end(&mut content)?;
    match content.len() == length {
        true => Ok((number, content)),
        false => Err(ErrorKind::UnexpectedEof.into()),
    }
}

fn send(server: &mut impl Write, number: u8, content: &[u8]) -> io::Result<()> {
    if content.len() >= PACKET_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the statement is too long for one packet"));
    }
    let [low, middle, high, _] = u32::try_from(content.len()).unwrap_or(0).to_le_bytes();
    let mut packet = vec![low, middle, high, number];
    packet.extend_from_slice(content);
    server.write_all(&packet)
}

/// Returns the text of an error packet: state and message, without the code.
fn refusal(reply: &[u8]) -> io::Error {
    io::Error::other(match reply.get(3..) {
        Some(text) => printable(text),
        None => "an answer that is none".to_owned(),
    })
}

fn printable(text: &[u8]) -> String {
    String::from_utf8_lossy(text).trim().chars().filter(|c| !c.is_control()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// What a client said to a server with these answers, and how it went.
    fn talk(
        answers: &'static [&'static [u8]],
        client: impl FnOnce(&mut BufReader<UnixStream>) -> io::Result<()>,
    ) -> (Vec<u8>, Result<(), String>) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let server = thread::spawn(move || {
            answers.iter().for_each(|answer| theirs.write_all(answer).unwrap());
            theirs.shutdown(std::net::Shutdown::Write).unwrap();
            let mut heard = Vec::new();
            theirs.read_to_end(&mut heard).unwrap();
            heard
        });
        let mut stream = BufReader::new(ours);
        let ended = client(&mut stream).map_err(|error| error.to_string());
        drop(stream);
        (server.join().unwrap(), ended)
    }

    #[test]
    fn a_message_begins_with_its_priority() {
        let check = |pri: u8, length: u64, begin: &[u8]| {
            let message = message(pri, length, &mut Random::new(7));
            assert_eq!(message.len() as u64, length);
            assert!(message.starts_with(begin), "{message:?}");
        };
        check(13, 40, b"<13>x: ");
        check(191, 8, b"<191>x: ");
        check(2, 8, b"<2>x: ");
    }

    #[test]
    fn redis_hears_a_set_and_its_refusal_is_quoted() {
        let set = |stream: &mut BufReader<UnixStream>| {
            stream.get_mut().write_all(&set_command(7, b"ab"))?;
            set_answer(stream)
        };
        let (heard, ended) = talk(&[b"+OK\r\n"], set);
        assert_eq!(heard, b"*3\r\n$3\r\nSET\r\n$5\r\nkey:7\r\n$2\r\nab\r\n");
        assert_eq!(ended, Ok(()));
        assert_eq!(talk(&[b"-MISCONF no\r\n"], set).1, Err("-MISCONF no".to_owned()));
        assert!(talk(&[], set).1.is_err());
    }

    const GREETING: &[u8] = b"\x05\0\0\0\x0a10.1";
    const OKAY: &[u8] = b"\x03\0\0\x02\0\0\0";

    #[test]
    fn mariadb_is_logged_in_to_and_asked() {
        let (heard, ended) = talk(&[GREETING, OKAY, b"\x01\0\0\x01\0"], |stream| {
            log_in(stream)?;
            query(stream, "DO 1")
        });
        assert_eq!(ended, Ok(()));
        assert_eq!(heard.get(..4), Some(&[60, 0, 0, 1][..]));
        assert!(heard.ends_with(b"mysql_native_password\0\x05\0\0\0\x03DO 1"), "{heard:?}");
    }

    #[test]
    fn mariadb_may_ask_for_another_way_and_may_refuse() {
        let (heard, ended) = talk(&[GREETING, b"\x01\0\0\x02\xfe", OKAY], log_in);
        assert_eq!((ended, heard.ends_with(&[0, 0, 0, 3])), (Ok(()), true));
        let refused = talk(&[GREETING, b"\x0c\0\0\x02\xff\x15\x04#28000 no"], log_in).1;
        assert!(refused.unwrap_err().contains("#28000 no"));
        let rows = talk(&[b"\x01\0\0\x01\x02"], |stream| query(stream, "SELECT 1")).1;
        assert!(rows.unwrap_err().contains("answers with rows"));
    }

    #[test]
    fn any_bytes_are_an_answer_or_are_not() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let _ = set_answer(&mut &*bytes);
            if let Ok((_, content)) = packet(&mut &*bytes) {
                assert!(content.len() <= bytes.len());
            }
        });
    }
}
