// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab kernels`: which kernels are here and which can be had.

use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use floodline_lab::cache::Cache;
use floodline_lab::kernels::{self, Fetching, Kernel, Offer};
use serde_json::json;

/// List the kernels that are here and those that can be had
#[derive(clap::Args)]
#[command(
    after_help = "A kernel is named by its version (6.12.43), the series of which the newest is meant (6.12), its \
        release name, `host`, or a path to a .deb, .rpm or a directory with vmlinuz and lib/modules.\n\n\
        Examples:\n  \
        floodline lab kernels --refresh\n  \
        floodline lab kernels --fetch 5.10"
)]
pub(super) struct Kernels {
    /// Read the package lists of suites beside this machine's own first
    #[arg(long)]
    refresh: bool,
    /// Fetch this kernel into the cache
    #[arg(long, value_name = "KERNEL")]
    fetch: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Finds a kernel, fetches it where it must, and says how far it is.
pub(super) fn find(console: &Console, cache: &Cache, wanted: &str, interrupt: &Interrupt) -> Result<Kernel, CliError> {
    let mut progress = console.progress();
    let mut tell = |fetching: &Fetching| progress.tell(|| fetching.to_string());
    kernels::find(cache, wanted, &mut tell, &|| interrupt.is_asked()).map_err(CliError::from)
}

impl Kernels {
    pub(super) fn run(self, console: &mut Console) -> Result<Exit, CliError> {
        // A half-fetched package is removed on the way out.
        let interrupt = Interrupt::watch()?;
        let cache = Cache::of_user().map_err(CliError::lab_unavailable)?;
        if self.refresh {
            let mut progress = console.progress();
            let mut tell = |fetching: &Fetching| progress.tell(|| fetching.to_string());
            kernels::refresh(&cache, &mut tell, &|| interrupt.is_asked())?;
        }
        if let Some(wanted) = &self.fetch {
            find(console, &cache, wanted, &interrupt)?;
        }
        if interrupt.is_asked() {
            return Err(CliError::lab_unavailable("interrupted"));
        }
        let mut here = kernels::cached(&cache)?;
        here.extend(kernels::host());
        // Without apt there is still what is here.
        let offers = match kernels::offers(&cache) {
            Ok(offers) => offers,
            Err(error) => {
                console.note(&error.to_string());
                Vec::new()
            }
        };
        console.print(&match self.format {
            Format::Text => text(&here, &offers),
            Format::Json => json(&here, &offers),
        })?;
        Ok(Exit::Done)
    }
}

fn text(here: &[Kernel], offers: &[Offer]) -> String {
    let mut text = String::from("Here:\n");
    for kernel in here {
        text.push_str(&format!("  {:<10} {:<34} {}\n", kernel.version.to_string(), kernel.release, kernel.origin));
    }
    if here.is_empty() {
        text.push_str("  none\n");
    }
    text.push_str("Can be had:\n");
    for offer in offers {
        let mib = offer.download_bytes.div_ceil(1 << 20);
        text.push_str(&format!("  {:<10} {} ({mib} MiB, {})\n", offer.version.to_string(), offer.package, offer.suite));
    }
    if offers.is_empty() {
        text.push_str("  none (floodline lab kernels --refresh looks in more suites)\n");
    }
    text
}

fn json(here: &[Kernel], offers: &[Offer]) -> String {
    let here: Vec<_> = here
        .iter()
        .map(|kernel| json!({ "version": kernel.version, "release": kernel.release, "origin": kernel.origin }))
        .collect();
    let offers: Vec<_> = offers
        .iter()
        .map(|offer| {
            json!({ "version": offer.version, "package": offer.package, "suite": offer.suite,
                    "package_version": offer.package_version, "download_bytes": offer.download_bytes })
        })
        .collect();
    format!("{}\n", json!({ "schema": "floodline.lab.kernels/1", "here": here, "can_be_had": offers }))
}
