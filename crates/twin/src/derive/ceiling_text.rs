// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sentence about the limits of a device for people. Only a device that was full for whole intervals was saturated. One whose limit shows
//! in short bursts was not.

use super::requests::{Kind, Requests};

/// Returns a sentence with the limits of a device: of bytes and of requests, and its bytes per second while it was busy.
pub(super) fn ceiling_text(name: &str, bytes: Option<f64>, requests: Option<Requests>, busy: Option<f64>) -> String {
    let rate = |bytes: f64| format!("{:.1} MB/s", bytes / 1e6);
    let while_busy = busy.map_or(String::new(), |busy| format!(". While busy it wrote {}", rate(busy)));
    let of_bursts = |it: Requests| {
        format!("In bursts it completed {:.0} small writes per second, one after the other", it.per_second)
    };
    let of_any = |it: Requests| format!("{:.0} small requests per second", it.per_second);
    match (bytes, requests) {
        (Some(bytes), Some(it)) if it.kind == Kind::OfBursts => {
            format!("{name} was saturated at {}. {}", rate(bytes), of_bursts(it))
        }
        (Some(bytes), Some(it)) => format!("{name} was saturated at {} and at {}", rate(bytes), of_any(it)),
        (Some(bytes), None) => format!("{name} was saturated at {}", rate(bytes)),
        (None, Some(it)) if it.kind == Kind::Seeks => {
            format!("{name} was saturated at {:.0} requests per second, most of whose time was seeks", it.per_second)
        }
        // Bursts do not keep a device full.
        (None, Some(it)) if it.kind == Kind::OfBursts => {
            format!("{name} was never saturated by bytes. {}{while_busy}", of_bursts(it))
        }
        (None, Some(it)) if busy.is_some() => {
            format!("{name} was saturated at {}, never by bytes{while_busy}", of_any(it))
        }
        (None, Some(it)) => format!("{name} was saturated at {}", of_any(it)),
        (None, None) => format!("{name} was never saturated: its ceiling is unknown{while_busy}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_whose_limit_shows_in_short_bursts_was_not_saturated_by_requests() {
        let told = |bytes: Option<f64>, kind: Kind, busy: Option<f64>| {
            ceiling_text("sda", bytes, Some(Requests { per_second: 20.0, kind, seek: None }), busy)
        };
        let bursts = "In bursts it completed 20 small writes per second, one after the other";
        let (bytes, busy) = (Some(35e6), Some(4e6));
        assert_eq!(told(bytes, Kind::OfBursts, bytes), format!("sda was saturated at 35.0 MB/s. {bursts}"));
        let unsaturated = format!("sda was never saturated by bytes. {bursts}");
        assert_eq!(told(None, Kind::OfBursts, None), unsaturated);
        assert_eq!(told(None, Kind::OfBursts, busy), format!("{unsaturated}. While busy it wrote 4.0 MB/s"));
        let saturated = "sda was saturated at 20 small requests per second";
        assert_eq!(told(None, Kind::Each, None), saturated);
        assert_eq!(told(None, Kind::Reads, busy), format!("{saturated}, never by bytes. While busy it wrote 4.0 MB/s"));
        let seeks = "sda was saturated at 20 requests per second, most of whose time was seeks";
        assert_eq!(told(None, Kind::Seeks, None), seeks);
        let both = "sda was saturated at 35.0 MB/s and at 20 small requests per second";
        assert_eq!(told(bytes, Kind::Together, bytes), both);
    }
}
