// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers for people: three figures and a unit. Bytes are always shown in powers of 1024 with such a unit (`MiB`), as
//! the kernel's limits are. For sentences and tables; JSON carries the plain number.

/// Formats an amount of memory or data, e.g. `1.20 GiB`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = value;
    let mut at = 0;
    // 999.5 would print as 1000 in three figures.
    while value.abs() >= 999.5 && at + 1 < UNITS.len() {
        value /= 1024.0;
        at += 1;
    }
    match at {
        0 => format!("{value:.0} B"),
        _ => format!("{} {}", three_figures(value), UNITS[at]),
    }
}

/// Formats a rate of data, e.g. `12.3 MiB/s`.
pub fn bytes_per_second(value: f64) -> String {
    format!("{}/s", bytes(value))
}

/// Formats a duration, e.g. `8.32 s`, `955 ms`, `12 min`.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => "0 s".to_owned(),
        s if s < 0.000_999_5 => format!("{:.0} µs", value * 1e6),
        s if s < 0.999_5 => format!("{} ms", three_figures(value * 1e3)),
        s if s < 9.995 => format!("{} s", three_figures(value)),
        s if s < 120.0 => format!("{value:.0} s"),
        s if s < 2.0 * 3600.0 => format!("{:.0} min", value / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.0} h", value / 3600.0),
        _ => format!("{:.0} d", value / 86400.0),
    }
}

/// Formats a share, e.g. `46 %`; below one percent with more figures.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        value if value.abs() < 1.0 => format!("{value:.2} %"),
        value if value.abs() < 9.95 => format!("{value:.1} %"),
        // Do not round up to 100 %.
        value if (99.5..100.0).contains(&value) => "over 99 %".to_owned(),
        value => format!("{value:.0} %"),
    }
}

/// Formats a part of a whole as [`percent`] does; what was counted to be more than the whole is "nearly all".
pub fn part(share: f64) -> String {
    if share > 1.0 { "nearly all".to_owned() } else { percent(share) }
}

/// Formats a plain number, e.g. `12.3`, `4096`.
pub fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { three_figures(value) }
}

/// Formats a count with its noun: "1 process", "3 processes".
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A count with commas between thousands.
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn three_figures(value: f64) -> String {
    match value.abs() {
        a if a >= 99.95 => format!("{value:.0}"),
        a if a >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A text as one word of a shell command: in quotes where a shell would take it apart or run a part of it.
pub fn quoted(text: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '=' | ',' | ':' | '+' | '@');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shown: String, expect: &str) {
        assert_eq!(shown, expect);
    }

    #[test]
    fn numbers_carry_three_figures() {
        check(bytes(0.0), "0 B");
        check(bytes(999.0), "999 B");
        check(bytes(1000.0), "0.98 KiB");
        check(bytes(4096.0), "4.00 KiB");
        check(bytes(104_857_600.0), "100 MiB");
        check(bytes(12.34 * 1024.0 * 1024.0), "12.3 MiB");
        check(bytes(1023.9 * 1024.0), "1.00 MiB");
        check(bytes(u64::MAX as f64), "16384 PiB");
        check(bytes_per_second(44_040_192.0), "42.0 MiB/s");
    }

    #[test]
    fn times_choose_their_unit() {
        check(seconds(0.0), "0 s");
        check(seconds(0.000_3), "300 µs");
        check(seconds(0.955), "955 ms");
        check(seconds(0.012), "12.0 ms");
        check(seconds(8.324), "8.32 s");
        check(seconds(0.9999), "1.00 s");
        check(seconds(15.04), "15 s");
        check(seconds(119.0), "119 s");
        check(seconds(1200.0), "20 min");
        check(seconds(43200.0), "12 h");
        check(seconds(400_000.0), "5 d");
    }

    #[test]
    fn a_shell_reads_a_quoted_text_as_one_word() {
        check(quoted("ring/host-1.flr"), "ring/host-1.flr");
        check(quoted("a file.flr"), "'a file.flr'");
        check(quoted("$(reboot).flr"), "'$(reboot).flr'");
        check(quoted("it's"), "'it'\\''s'");
        check(quoted(""), "''");
    }

    #[test]
    fn shares_and_counts() {
        check(percent(0.46), "46 %");
        check(percent(0.004), "0.40 %");
        check(percent(0.05), "5.0 %");
        check(percent(0.0), "0 %");
        check(percent(0.9993), "over 99 %");
        check(percent(1.0), "100 %");
        check(plural(1, "process", "processes"), "1 process");
        check(plural(0, "process", "processes"), "0 processes");
        check(number(12.34), "12.3");
        check(number(20_000.0), "20000");
    }
}
