// SPDX-License-Identifier: MIT OR Apache-2.0
//! `floodline lab kernels`: which kernels are here and which can be had.

use crate::console::{Console, Format};
use crate::error::CliError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use floodline_lab::cache::Cache;
use floodline_lab::kernels::{self, Fetching, Kernel, Offer};
use serde_json::json;

/// List the cached kernels and those that can be downloaded
#[derive(clap::Args)]
#[command(after_help = "Name a kernel by its version (6.12.43), its series for the newest of that series (6.12), its \
        release name, `host`, or a path to a .deb, .rpm or a directory with vmlinuz and lib/modules.\n\n\
        Examples:\n  \
        floodline lab kernels --refresh\n  \
        floodline lab kernels --fetch 5.10")]
pub(super) struct Kernels {
    /// First update the package lists, including suites other than this machine's own
    #[arg(long)]
    refresh: bool,
    /// Download this kernel into the cache
    #[arg(long, value_name = "KERNEL")]
    fetch: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Finds a kernel, fetches it if necessary, and shows the progress.
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
    let mut text = String::from("Cached:\n");
    for kernel in here {
        text.push_str(&format!("  {:<10} {:<34} {}\n", kernel.version.to_string(), kernel.release, kernel.origin));
    }
    if here.is_empty() {
        text.push_str("  none\n");
    }
    text.push_str("Available:\n");
    for offer in offers {
        let mib = offer.download_bytes.div_ceil(1 << 20);
        text.push_str(&format!("  {:<10} {} ({mib} MiB, {})\n", offer.version.to_string(), offer.package, offer.suite));
    }
    if offers.is_empty() {
        text.push_str("  none (floodline lab kernels --refresh searches more suites)\n");
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
