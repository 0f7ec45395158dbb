// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel series on which the tracer was proved in guests of the lab. On these it runs by default. On others the user
//! requests it (`--trace on`), and it works as far as the kernel has what it needs: a host with an incident is not the
//! place to try an unproved program in the kernel. Facts only: the caller that starts the tracer decides.

/// Series whose kernels ran the tracer's tests in guests of the lab (`docs/tracing.md`).
pub static PROVED: &[&str] = &["5.10", "6.1", "6.12", "7.2"];

/// Whether the kernel of this release (`uname -r`) belongs to a series of [`PROVED`].
pub fn is_proved(release: &str) -> bool {
    PROVED.iter().any(|series| {
        release.strip_prefix(series).is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_told_by_its_two_numbers() {
        let check = |release: &str, expect: bool| assert_eq!(is_proved(release), expect, "{release}");
        check("6.12.117+deb12-cloud-amd64", true);
        check("5.10.0-32-cloud-amd64", true);
        check("6.1.0", true);
        check("7.2-rc1", true);
        check("7.2", true);
        check("6.18.44-fc-v669", false);
        check("6.120.0", false);
        check("5.1.0", false);
        check("", false);
    }
}
