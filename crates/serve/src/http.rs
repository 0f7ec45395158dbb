// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP side of the exporter: one thread, 128 connections of which four are answered at a time, no keep-alive. A request
//! has 8 KiB of head and five seconds from the first byte to the last one of its answer. A client that is slow on purpose
//! loses its place to the next one: silent connections do not keep a scraper waiting.

use crate::board::Board;
use crate::clock;
use floodline_view::metrics::Format;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Longest head of a request, bytes.
const HEAD_MAX: usize = 8 << 10;
/// Time for a whole request.
const DEADLINE: Duration = Duration::from_secs(5);
/// Connections at a time; others wait in the kernel. A connection without a request is small.
const CONNECTIONS: usize = 128;
/// Answers at a time: each is in memory until it is sent.
const ANSWERS: usize = 4;
/// A connection without a complete request head after this time is closed in favour of a waiting one.
const PATIENCE: Duration = Duration::from_millis(250);
/// An answer of which nothing was sent for this time is given up in favour of a waiting request.
const UNREAD: Duration = Duration::from_secs(1);
/// Headers that a request may have.
const HEADERS_MAX: usize = 64;

/// A socket that scrapers connect to.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket that was handed in.
    Unix(UnixListener),
}

impl Listener {
    fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
        }
    }

    /// From here on accepting never waits.
    pub fn set_nonblocking(&self) -> std::io::Result<()> {
        match self {
            Listener::Tcp(listener) => listener.set_nonblocking(true),
            Listener::Unix(listener) => listener.set_nonblocking(true),
        }
    }

    fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener) => listener.as_fd(),
        }
    }
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn set_nonblocking(&self) -> std::io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(true),
            Stream::Unix(stream) => stream.set_nonblocking(true),
        }
    }

    fn fd(&self) -> rustix::fd::BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}

/// One request in progress.
struct Connection {
    stream: Stream,
    since: Instant,
    head: Vec<u8>,
    /// Whether the head is complete, so that an answer is due.
    is_asked: bool,
    answer: Vec<u8>,
    sent: usize,
    /// When some of the answer was sent last.
    moved: Instant,
}

/// Whether a connection goes on.
#[derive(PartialEq, Eq)]
enum Goes {
    On,
    Ends,
}

/// Answers requests for as long as the process lives.
pub(crate) fn serve(listeners: &[Listener], board: &Arc<Mutex<Board>>) {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let now = Instant::now();
        connections.retain(|connection| now.duration_since(connection.since) < DEADLINE);
        let has_room = connections.len() < CONNECTIONS || connections.iter().any(|one| one.is_slow(now));
        let mut fds: Vec<PollFd<'_>> =
            connections.iter().map(|one| PollFd::from_borrowed_fd(one.stream.fd(), one.waits_for())).collect();
        if has_room {
            fds.extend(listeners.iter().map(|listener| PollFd::from_borrowed_fd(listener.fd(), PollFlags::IN)));
        }
        let wait = match connections.is_empty() {
            true => None,
            // Short enough to see that a place is free, and that a deadline has passed.
            false => Some(Timespec { tv_sec: 0, tv_nsec: 100_000_000 }),
        };
        if let Err(error) = poll(&mut fds, wait.as_ref())
            && error != rustix::io::Errno::INTR
        {
            std::thread::sleep(PATIENCE);
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let (of_connections, of_listeners) = ready.split_at(connections.len().min(ready.len()));
        let mut of_connections = of_connections.iter();
        connections.retain_mut(|one| match of_connections.next() {
            Some(true) => one.go_on() == Goes::On,
            _ => true,
        });
        for (listener, is_ready) in listeners.iter().zip(of_listeners) {
            if *is_ready {
                accept(listener, &mut connections);
            }
        }
        answer_next(&mut connections, board);
    }
}

/// Answers the requests that wait longest, as many as there are places for answers.
fn answer_next(connections: &mut Vec<Connection>, board: &Arc<Mutex<Board>>) {
    let is_waiting = |one: &Connection| one.is_asked && one.answer.is_empty();
    if connections.iter().any(is_waiting) {
        let now = Instant::now();
        connections.retain(|one| one.answer.is_empty() || now.duration_since(one.moved) < UNREAD);
    }
    let mut waiting: Vec<usize> =
        (0..connections.len()).filter(|&at| connections.get(at).is_some_and(is_waiting)).collect();
    waiting.sort_by_key(|&at| connections.get(at).map(|one| one.since));
    let mut is_over = vec![false; connections.len()];
    for at in waiting {
        let under_way = connections.iter().zip(&is_over).filter(|(one, is_over)| !one.answer.is_empty() && !**is_over);
        if under_way.count() >= ANSWERS {
            break;
        }
        let Some((one, is_over)) = connections.get_mut(at).zip(is_over.get_mut(at)) else { continue };
        one.answer = answer(&one.head, board).unwrap_or_default();
        one.moved = Instant::now();
        *is_over = one.answer.is_empty() || one.go_on() == Goes::Ends;
    }
    let mut is_over = is_over.into_iter();
    connections.retain(|_| is_over.next() != Some(true));
}

/// Accepts the connections that wait. Each is read at once: a scraper has sent its request by then.
fn accept(listener: &Listener, connections: &mut Vec<Connection>) {
    for _ in 0..CONNECTIONS {
        let now = Instant::now();
        let slow = || connections.iter().enumerate().filter(|(_, one)| one.is_slow(now));
        if connections.len() >= CONNECTIONS {
            match slow().min_by_key(|(_, one)| one.since).map(|(at, _)| at) {
                Some(at) => drop(connections.swap_remove(at)),
                // Others wait in the kernel until a place is free.
                None => return,
            }
        }
        match listener.accept() {
            Ok(stream) => {
                if stream.set_nonblocking().is_ok() {
                    let (head, answer) = (Vec::new(), Vec::new());
                    let mut one = Connection { stream, since: now, head, is_asked: false, answer, sent: 0, moved: now };
                    if one.go_on() == Goes::On {
                        connections.push(one);
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // Out of descriptors, or the scraper has disconnected: sleep to avoid a busy loop.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(50));
                return;
            }
        }
    }
}

impl Connection {
    fn is_slow(&self, now: Instant) -> bool {
        !self.is_asked && now.duration_since(self.since) >= PATIENCE
    }

    fn waits_for(&self) -> PollFlags {
        match (self.is_asked, self.answer.is_empty()) {
            (false, _) => PollFlags::IN,
            (true, true) => PollFlags::empty(),
            (true, false) => PollFlags::OUT,
        }
    }

    /// Reads or writes as far as possible without blocking.
    fn go_on(&mut self) -> Goes {
        if self.answer.is_empty() {
            let mut bytes = [0; 2048];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Goes::Ends,
                // What comes after a request is not read.
                Ok(_) if self.is_asked => {}
                Ok(length) => {
                    self.head.extend_from_slice(bytes.get(..length).unwrap_or_default());
                    self.is_asked = is_whole(&self.head);
                }
                Err(error) if is_later(&error) => {}
                Err(_) => return Goes::Ends,
            }
            return Goes::On;
        }
        while let Some(rest) = self.answer.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(0) => return Goes::Ends,
                Ok(length) => (self.sent, self.moved) = (self.sent + length, Instant::now()),
                Err(error) if is_later(&error) => return Goes::On,
                Err(_) => return Goes::Ends,
            }
        }
        Goes::Ends
    }
}

/// Whether a request can be answered: its head is complete, too long, or not one.
fn is_whole(head: &[u8]) -> bool {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let parsed = httparse::Request::new(&mut headers).parse(head);
    head.len() >= HEAD_MAX || !matches!(parsed, Ok(httparse::Status::Partial))
}

/// The path of a request's target. A client may name the whole address (RFC 9112, 3.2.2): scheme and host are left out.
fn path_of(target: &str) -> &str {
    let after_scheme = target
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"));
    let path = match after_scheme {
        Some((_, rest)) => rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => target,
    };
    match path.split('?').next() {
        Some("") | None => "/",
        Some(path) => path,
    }
}

fn is_later(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The answer to a request; `None` while its head is not complete.
fn answer(head: &[u8], board: &Arc<Mutex<Board>>) -> Option<Vec<u8>> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let board = || board.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, kind, body) = match request.parse(head) {
        Ok(httparse::Status::Partial) if head.len() < HEAD_MAX => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            (431, PLAIN, "the head of a request has at most 8 KiB and 64 headers\n".to_owned())
        }
        Err(_) => (400, PLAIN, "not an HTTP request\n".to_owned()),
        Ok(httparse::Status::Complete(_)) => match (request.method, request.path) {
            (Some("GET" | "HEAD"), Some(target)) => match path_of(target) {
                "/metrics" => {
                    let accept = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("accept"));
                    let accept = accept.map(|header| String::from_utf8_lossy(header.value)).unwrap_or_default();
                    let format = Format::accepted(&accept);
                    (200, format.content_type(), board().render(clock::now(), format).0)
                }
                "/-/healthy" => (200, PLAIN, "ok\n".to_owned()),
                "/-/ready" if board().has_sample() => (200, PLAIN, "ok\n".to_owned()),
                "/-/ready" => (503, PLAIN, "no sample yet\n".to_owned()),
                "/" => (200, PLAIN, "floodline serve: metrics are at /metrics\n".to_owned()),
                _ => (404, PLAIN, "not here; metrics are at /metrics\n".to_owned()),
            },
            _ => (405, PLAIN, "only GET and HEAD\n".to_owned()),
        },
    };
    board().count_scrape(status);
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    };
    let is_head = request.method == Some("HEAD");
    let mut answer = format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
         X-Content-Type-Options: nosniff\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if !is_head {
        answer.extend_from_slice(body.as_bytes());
    }
    Some(answer)
}

const PLAIN: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> std::net::SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let listener = Listener::Tcp(listener);
        listener.set_nonblocking().unwrap();
        let board = Arc::new(Mutex::new(Board::new("1.2.3")));
        std::thread::spawn(move || serve(&[listener], &board));
        address
    }

    fn ask(address: std::net::SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // The server may answer and close before everything is sent.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn requests_get_the_status_that_they_deserve() {
        let address = served();
        let check = |request: &str, status: &str| {
            let answer = ask(address, request.as_bytes());
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer:?}");
        };
        check("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200");
        check("GET /metrics?a=b HTTP/1.0\r\n\r\n", "200");
        check("GET / HTTP/1.1\r\n\r\n", "200");
        check("GET /-/ready HTTP/1.1\r\n\r\n", "503");
        check("GET http://127.0.0.1:9469/metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200");
        check("GET HTTP://a/metrics?x=/-/y HTTP/1.1\r\nHost: a\r\n\r\n", "200");
        check("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", "200");
        check("GET http://metrics HTTP/1.1\r\nHost: a\r\n\r\n", "200");
        check("GET http://a/nothing HTTP/1.1\r\nHost: a\r\n\r\n", "404");
        check("GET ftp://a/metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404");
        check("GET /etc/passwd HTTP/1.1\r\n\r\n", "404");
        check("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405");
        check("\x01\x02\x03\r\n\r\n", "400");
        let head = ask(address, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.ends_with("\r\n\r\n") && head.contains("version=0.0.4"), "{head}");
        let open = ask(address, b"GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text\r\n\r\n");
        assert!(open.ends_with("# EOF\n") && open.contains("application/openmetrics-text"), "{open}");
    }

    #[test]
    fn a_head_of_a_megabyte_is_refused_after_8_kib() {
        let mut request = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        request.extend(std::iter::repeat_n(b'a', 1 << 20));
        let answer = ask(served(), &request);
        // The answer may be lost to the reset that unread bytes cause; the connection ends either way.
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer:?}");
        let mut just = b"GET /metrics HTTP/1.1\r\nX: ".to_vec();
        just.resize(HEAD_MAX, b'a');
        assert!(ask(served(), &just).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn connections_that_say_nothing_do_not_keep_a_scraper_out() {
        let address = served();
        let silent: Vec<TcpStream> = (0..12).filter_map(|_| TcpStream::connect(address).ok()).collect();
        let mut trickling = TcpStream::connect(address).unwrap();
        trickling.write_all(b"GET /met").unwrap();
        let asked = Instant::now();
        let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
        assert!(asked.elapsed() < DEADLINE);
        drop(silent);
        let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
    }

    /// More of them than there are places, and than the kernel queues: a program without privileges can open them.
    #[test]
    fn hundreds_of_silent_connections_hardly_delay_a_scraper() {
        let address = served();
        let silent = std::thread::spawn(move || -> Vec<TcpStream> {
            (0..600).filter_map(|_| TcpStream::connect_timeout(&address, Duration::from_secs(3)).ok()).collect()
        });
        std::thread::sleep(Duration::from_millis(200));
        let asked = Instant::now();
        let answer = ask(address, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer:?}");
        // Usually some milliseconds. The kernel sends a connection request again after 1 s where its queue is full.
        assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
        drop(silent.join());
    }

    #[test]
    fn clients_that_do_not_read_their_answers_lose_their_places() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let board = Arc::new(Mutex::new(Board::new("1.2.3")));
        let (mut clients, mut connections) = (Vec::new(), Vec::new());
        let long_ago = Instant::now().checked_sub(UNREAD).unwrap();
        for number in 0..=ANSWERS {
            clients.push(TcpStream::connect(address).unwrap());
            let (stream, _) = listener.accept().unwrap();
            stream.set_nonblocking(true).unwrap();
            let is_last = number == ANSWERS;
            connections.push(Connection {
                stream: Stream::Tcp(stream),
                since: Instant::now(),
                head: b"GET /metrics HTTP/1.1\r\n\r\n".to_vec(),
                is_asked: true,
                answer: if is_last { Vec::new() } else { vec![b'x'; 64] },
                sent: 0,
                moved: Instant::now(),
            });
        }
        // All places are taken by answers that go on: the last request waits.
        answer_next(&mut connections, &board);
        assert_eq!(connections.len(), ANSWERS + 1);
        // None of them was read for long.
        connections.iter_mut().for_each(|one| one.moved = long_ago);
        answer_next(&mut connections, &board);
        let mut answer = String::new();
        clients.last_mut().unwrap().read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && connections.is_empty(), "{answer}");
    }
}
