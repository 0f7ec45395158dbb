// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the exporter listens: sockets that systemd hands in (`LISTEN_FDS`), or an address, which is loopback unless the
//! user names another one.

#![allow(unsafe_code, reason = "descriptors that are handed in are plain numbers")]

use crate::error::ServeError;
use crate::http::Listener;
use rustix::fd::{FromRawFd, OwnedFd};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

/// Descriptor of the first socket that systemd hands in.
const FIRST: i32 = 3;

/// Sockets passed by systemd, from the environment: `LISTEN_PID` and `LISTEN_FDS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandedIn {
    count: i32,
}

impl HandedIn {
    /// From the two variables: they count only for the process that they name.
    pub fn of(pid: Option<&str>, count: Option<&str>) -> HandedIn {
        let is_ours = pid.and_then(|pid| pid.parse::<u32>().ok()) == Some(std::process::id());
        let count = count.and_then(|count| count.parse().ok()).filter(|count| (0..=16).contains(count));
        HandedIn { count: count.filter(|_| is_ours).unwrap_or(0) }
    }

    /// The sockets. Call it once: each call would take the same descriptors.
    pub fn take(self) -> Result<Vec<Listener>, ServeError> {
        (FIRST..FIRST + self.count).map(of_descriptor).collect()
    }
}

fn of_descriptor(number: i32) -> Result<Listener, ServeError> {
    // SAFETY: `LISTEN_FDS` and `LISTEN_PID` promise that this descriptor is open and this process's own; `take` is
    // called once, before anything else could be opened at that number.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    let wrong = || ServeError::new("the socket that was handed in (LISTEN_FDS) is not a listening stream socket");
    // Programs that this one starts have no use for it.
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC).map_err(|_| wrong())?;
    let stat = rustix::fs::fstat(&fd).map_err(|_| wrong())?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::Socket {
        return Err(wrong());
    }
    let tcp = TcpListener::from(fd);
    if tcp.local_addr().is_ok() {
        return Ok(Listener::Tcp(tcp));
    }
    Ok(Listener::Unix(OwnedFd::from(tcp).into()))
}

/// Listens at an address such as `127.0.0.1:9469`.
pub fn bind(address: &str) -> Result<(Listener, SocketAddr), ServeError> {
    let wrong = || {
        ServeError::new(format!("invalid address {address:?}: expected a value such as 127.0.0.1:9469 or [::1]:9469"))
            .usage()
            .hint("--listen none serves no metrics")
    };
    let address = address.to_socket_addrs().map_err(|_| wrong())?.next().ok_or_else(wrong)?;
    let listener = TcpListener::bind(address).map_err(|error| {
        let told = ServeError::new(format!("cannot listen on {address}: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => told
                .hint("another program listens there, perhaps another floodline serve")
                .hint("choose another port: floodline serve --listen 127.0.0.1:9470"),
            std::io::ErrorKind::PermissionDenied => told.hint("ports below 1024 need CAP_NET_BIND_SERVICE"),
            _ => told,
        }
    })?;
    let local = listener.local_addr().unwrap_or(address);
    Ok((Listener::Tcp(listener), local))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_count_only_for_the_process_that_they_are_meant_for() {
        let own = std::process::id().to_string();
        assert_eq!(HandedIn::of(Some(&own), Some("2")).count, 2);
        for (pid, count) in [
            (None, Some("1")),
            (Some("1"), Some("1")),
            (Some(own.as_str()), None),
            (Some(&own), Some("-1")),
            (Some(&own), Some("x")),
        ] {
            assert_eq!(HandedIn::of(pid, count).count, 0, "{pid:?} {count:?}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_said_with_what_to_type_next() {
        let (_listener, address) = bind("127.0.0.1:0").unwrap();
        let error = bind(&address.to_string()).unwrap_err();
        assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
        assert_eq!(error.hints().len(), 2);
        assert!(bind("nonsense").unwrap_err().is_usage());
    }
}
