// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two text formats that Prometheus scrapes: 0.0.4 and OpenMetrics 1.0. The caller names a family and then adds its
//! series; the encoder writes the head of a family once, with its first series.

use super::catalogue::{Family, Kind};
use std::fmt::Write;

/// A text format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    #[default]
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// The format that an `Accept` header asks for: OpenMetrics where it is named, else text.
    pub fn accepted(accept: &str) -> Format {
        if accept.contains("application/openmetrics-text") { Format::OpenMetrics } else { Format::Text }
    }
}

/// The labels of one series, escaped as both formats want them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(String);

impl Labels {
    /// No label.
    pub fn none() -> Labels {
        Labels::default()
    }

    /// One label.
    pub fn one(name: &str, value: &str) -> Labels {
        Labels::none().and(name, value)
    }

    /// Adds a label. The value may be any text.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Labels {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(name);
        self.0.push_str("=\"");
        for c in value.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
        self.0.push('"');
        self
    }

    /// The text between the braces.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Integer(u64),
    /// Nanoseconds, written as seconds to the nanosecond.
    Nanos(u64),
    /// Any other number; one that is not finite is written as `NaN`, `+Inf` or `-Inf`.
    Decimal(f64),
}

impl Number {
    fn put(self, out: &mut String) {
        // A string takes everything.
        let _ = match self {
            Number::Integer(number) => write!(out, "{number}"),
            Number::Nanos(nanos) => {
                let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
                let result = write!(out, "{seconds}");
                if rest > 0 {
                    let digits = format_args!(".{rest:09}").to_string();
                    out.push_str(digits.trim_end_matches('0'));
                }
                result
            }
            Number::Decimal(number) if number.is_nan() => write!(out, "NaN"),
            Number::Decimal(number) if number.is_infinite() => {
                write!(out, "{}Inf", if number > 0.0 { '+' } else { '-' })
            }
            Number::Decimal(number) => write!(out, "{number}"),
        };
    }
}

/// A page of metrics in the making.
#[derive(Debug)]
pub struct Exposition {
    format: Format,
    out: String,
    series: usize,
}

impl Exposition {
    /// Starts a page. `room` is the expected length, bytes.
    pub fn new(format: Format, room: usize) -> Exposition {
        Exposition { format, out: String::with_capacity(room), series: 0 }
    }

    /// Starts a family. It must have no series yet: both formats want the series of a family in one place.
    pub fn family<'page>(&'page mut self, family: &'page Family) -> Series<'page> {
        Series { page: self, family, is_begun: false }
    }

    /// Series written so far.
    pub fn series(&self) -> usize {
        self.series
    }

    /// Ends the page.
    pub fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.out.push_str("# EOF\n");
        }
        self.out
    }
}

/// The series of one family.
#[derive(Debug)]
pub struct Series<'page> {
    page: &'page mut Exposition,
    family: &'page Family,
    is_begun: bool,
}

impl Series<'_> {
    /// Adds a series of a counter or gauge.
    pub fn add(&mut self, labels: &Labels, value: Number) {
        self.begin();
        self.line("", labels.as_str(), value);
    }

    /// Adds a histogram: the upper limits of its buckets in seconds, each with the number of waits up to there, in rising
    /// order; all waits; and their sum in nanoseconds.
    pub fn add_histogram(&mut self, labels: &Labels, buckets: &[(f64, u64)], count: u64, sum_nanos: u64) {
        self.begin();
        let mut text = String::new();
        let limits = buckets.iter().map(|(limit, upto)| (format!("{limit:?}"), *upto));
        for (limit, upto) in limits.chain([("+Inf".to_owned(), count)]) {
            text.clear();
            text.push_str(labels.as_str());
            if !text.is_empty() {
                text.push(',');
            }
            let _ = write!(text, "le=\"{limit}\"");
            self.line("_bucket", &text, Number::Integer(upto));
        }
        self.line("_sum", labels.as_str(), Number::Nanos(sum_nanos));
        self.line("_count", labels.as_str(), Number::Integer(count));
    }

    fn begin(&mut self) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        let is_open = self.page.format == Format::OpenMetrics;
        // OpenMetrics names a counter without the ending of its series.
        let name = if is_open { self.family.base_name() } else { self.family.name.as_str() };
        let out = &mut self.page.out;
        let _ = write!(out, "# HELP {name} ");
        for c in self.family.help.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '"' if is_open => out.push_str("\\\""),
                c => out.push(c),
            }
        }
        let kind = match self.family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let _ = writeln!(out, "\n# TYPE {name} {kind}");
    }

    fn line(&mut self, ending: &str, labels: &str, value: Number) {
        let out = &mut self.page.out;
        out.push_str(&self.family.name);
        out.push_str(ending);
        if !labels.is_empty() {
            out.push('{');
            out.push_str(labels);
            out.push('}');
        }
        out.push(' ');
        value.put(out);
        out.push('\n');
        self.page.series += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floodline_testkit::exposition::check;

    fn family(name: &str, kind: Kind) -> Family {
        Family { name: name.to_owned(), kind, help: "A \"test\" of \\ and\nlines.".to_owned() }
    }

    fn page(format: Format) -> String {
        let mut page = Exposition::new(format, 0);
        let counter = family("floodline_a_seconds_total", Kind::Counter);
        let mut series = page.family(&counter);
        series.add(&Labels::one("cgroup", "a\\b\"c\nd"), Number::Nanos(1_500_000_000));
        series.add(&Labels::one("cgroup", "z").and("disk", "sda"), Number::Nanos(7));
        let gauge = family("floodline_b_ratio", Kind::Gauge);
        page.family(&gauge).add(&Labels::none(), Number::Decimal(0.25));
        let empty = family("floodline_empty", Kind::Gauge);
        let _ = page.family(&empty);
        let waits = family("floodline_wait_seconds", Kind::Histogram);
        page.family(&waits).add_histogram(&Labels::one("op", "fsync"), &[(0.125, 3), (1.0, 4)], 5, 9_000_000_000);
        assert_eq!(page.series(), 8);
        page.finish()
    }

    #[test]
    fn both_formats_are_as_published() {
        let text = page(Format::Text);
        assert_eq!(
            text,
            "# HELP floodline_a_seconds_total A \"test\" of \\\\ and\\nlines.\n\
             # TYPE floodline_a_seconds_total counter\n\
             floodline_a_seconds_total{cgroup=\"a\\\\b\\\"c\\nd\"} 1.5\n\
             floodline_a_seconds_total{cgroup=\"z\",disk=\"sda\"} 0.000000007\n\
             # HELP floodline_b_ratio A \"test\" of \\\\ and\\nlines.\n\
             # TYPE floodline_b_ratio gauge\n\
             floodline_b_ratio 0.25\n\
             # HELP floodline_wait_seconds A \"test\" of \\\\ and\\nlines.\n\
             # TYPE floodline_wait_seconds histogram\n\
             floodline_wait_seconds_bucket{op=\"fsync\",le=\"0.125\"} 3\n\
             floodline_wait_seconds_bucket{op=\"fsync\",le=\"1.0\"} 4\n\
             floodline_wait_seconds_bucket{op=\"fsync\",le=\"+Inf\"} 5\n\
             floodline_wait_seconds_sum{op=\"fsync\"} 9\n\
             floodline_wait_seconds_count{op=\"fsync\"} 5\n"
        );
        assert_eq!(check(&text, false), Ok(8));
        let open = page(Format::OpenMetrics);
        assert!(open.contains("# TYPE floodline_a_seconds counter\nfloodline_a_seconds_total{"), "{open}");
        assert!(open.ends_with("# EOF\n"));
        assert_eq!(check(&open, true), Ok(8));
    }

    #[test]
    fn a_scraper_gets_the_format_that_it_names() {
        assert_eq!(
            Format::accepted("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"),
            Format::OpenMetrics
        );
        assert_eq!(Format::accepted("text/html, */*"), Format::Text);
    }

    #[test]
    fn numbers_are_written_without_loss() {
        let check = |number: Number, expect: &str| {
            let mut out = String::new();
            number.put(&mut out);
            assert_eq!(out, expect);
        };
        check(Number::Integer(u64::MAX), "18446744073709551615");
        check(Number::Nanos(1), "0.000000001");
        check(Number::Nanos(2_000_000_000), "2");
        check(Number::Decimal(f64::NAN), "NaN");
        check(Number::Decimal(f64::NEG_INFINITY), "-Inf");
    }
}
