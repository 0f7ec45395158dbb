// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline serve` as a scraper and an operator meet it.

use crate::harness::{PATIENCE, captured, command, floodline};
use floodline_testkit::exposition::check;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A server on a port of its own.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts it over a captured machine, with a sample every 50 ms.
    pub(crate) fn start(args: &[&str]) -> Server {
        Server::start_every("50ms", args)
    }

    /// Starts it over a captured machine.
    pub(crate) fn start_every(every: &str, args: &[&str]) -> Server {
        let root = captured("6.12");
        let mut all = vec!["serve", "--listen", "127.0.0.1:0", "--every", every, "--root", &root];
        all.extend(args);
        let mut child = command(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        stderr.read_line(&mut said).expect("it says where it listens");
        let address = said.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.unwrap_or_else(|| panic!("it says where it listens: {said}")).to_owned();
        assert!(said.contains("reachable from this machine only"), "{said}");
        // Whatever it says later must not block it.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Server { child, address }
    }

    /// Asks for a page.
    pub(crate) fn get(&self, path: &str, header: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\n{header}\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.to_owned(), body.to_owned())
    }

    /// Asks for metrics until the page has a text.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            let (_, page) = self.get("/metrics", "");
            if page.contains(text) {
                return page;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "no {text:?} in\n{page}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks it to end, as systemd does; its exit code.
    pub(crate) fn end(mut self) -> i32 {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < until, "it does not end within a minute");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_scraper_gets_valid_pages_with_an_answer_of_every_rule() {
    let server = Server::start(&[]);
    let page = server.wait_for("floodline_finding_active");
    assert!(check(&page, false).is_ok(), "{:?}\n{page}", check(&page, false));
    for rule in floodline(&["explain"])
        .stdout
        .lines()
        .filter_map(|line| line.split("  ").next())
        .filter(|rule| rule.contains('-') && !rule.contains(' '))
    {
        assert!(page.contains(&format!("floodline_finding_active{{rule=\"{rule}\",severity=\"critical\"}}")), "{rule}");
    }
    let (head, open) = server.get("/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("application/openmetrics-text"), "{head}");
    assert!(check(&open, true).is_ok(), "{:?}\n{open}", check(&open, true));
    assert_eq!(server.end(), 0);
}

/// Code that first runs in a storm must not be read back from the disk that is flooded.
#[test]
fn the_whole_program_is_in_memory_from_the_start() {
    let server = Server::start(&[]);
    server.wait_for("floodline_looks_total");
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", server.child.id())).expect("it runs");
    let mut code = Vec::new();
    let mut lines = maps.lines();
    while let Some(head) = lines.find(|line| line.contains(" r-xp ") && line.ends_with("/floodline")) {
        let mut kilobytes = |name: &str| {
            let line = lines.find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name} of {head}"));
            line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
        };
        code.push((kilobytes("Size:"), kilobytes("Rss:"), kilobytes("Locked:")));
    }
    assert_eq!(server.end(), 0);
    assert!(!code.is_empty(), "{maps}");
    if code.iter().all(|(_, _, locked)| *locked == 0) {
        floodline_skip::skip(floodline_skip::Need::Root, "memory cannot be locked");
        return;
    }
    assert!(code.iter().all(|(size, resident, _)| size == resident), "{code:?}");
}

#[test]
fn a_thousand_connections_and_a_megabyte_of_head_harm_nobody_else() {
    let server = Server::start(&[]);
    let before = server.wait_for("floodline_looks_total");
    assert!(check(&before, false).is_ok());
    let idle: Vec<_> = (0..1000)
        .map_while(|_| TcpStream::connect_timeout(&server.address.parse().unwrap(), Duration::from_millis(200)).ok())
        .collect();
    assert!(!idle.is_empty());
    let mut large = TcpStream::connect(&server.address);
    if let Ok(large) = &mut large {
        large.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
        let _ = large.write_all(&vec![b'a'; 1 << 20]);
    }
    drop(idle);
    drop(large);
    let page = server.wait_for("floodline_looks_total");
    assert!(check(&page, false).is_ok());
    assert_eq!(server.end(), 0);
}

#[test]
fn two_servers_on_one_port_are_an_error_that_says_what_to_type() {
    let server = Server::start(&[]);
    let run = floodline(&["serve", "--listen", &server.address]);
    assert_eq!(run.code, 3, "{run}");
    assert!(
        run.stderr.contains("cannot listen on 127.0.0.1:") && run.stderr.contains("hint: choose another port"),
        "{run}"
    );
    let run = floodline(&["serve", "--listen", "nonsense"]);
    assert_eq!(run.code, 2, "{run}");
    assert_eq!(server.end(), 0);
}
