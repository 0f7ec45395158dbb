// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values derived from a window, each computed once: rules read them here instead of computing them again. Stands
//! between the window and the rules. Depends on no rule and judges nothing.

use super::asleep::{self, Busy, Sleepers};
use super::cgroup::{self, DevicesWritten};
use super::cleaned::Cleaned;
use super::crowded::{self, Crowded};
use super::device::{self, Device, Speed};
use super::dirty::{self, Dirty};
use super::load::{self, Load};
use super::missing;
use super::placed::{self, Places};
use super::released::{self, Released};
use super::strict::{self, Strict};
use super::unmount::Unmounts;
use super::waiting::{self, Waiter};
use super::writer::{self, Writers};
use super::{Verdict, throttle};
use crate::advise::step;
use crate::budget::{self, Budgets, DomainBudget};
use crate::report::Step;
use crate::shown;
use floodline_kernel::Behaviour;
use floodline_record::facts::Stack;
use floodline_record::gap::{Gap, Source};
use floodline_record::id::EntityId;
use floodline_record::window::Window;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Part of the window in which a disk is busy that programs outrun.
const NO_TIME_LEFT: f64 = 0.9;

/// Readings of a window and what follows from them. Levels and thresholds are computed at the start; devices, writers,
/// budgets and waits when a rule first asks for them.
pub struct Derived<'a> {
    /// The readings themselves.
    pub window: &'a Window,
    /// Seconds between the first and the last sample; 0 with one sample.
    pub seconds: f64,
    /// Whether counters can be turned into rates: two samples some time apart.
    pub has_rates: bool,
    /// Page size of the machine, bytes.
    pub page_size: u64,
    /// How its kernel behaves, by its version and by what the host shows; `None` where the version is not known.
    pub behaviour: Option<Behaviour>,
    /// Levels, thresholds and rates of the machine's dirty pages.
    pub dirty: Dirty,
    devices: OnceCell<Vec<Device<'a>>>,
    devices_written: OnceCell<DevicesWritten<'a>>,
    disks: OnceCell<Vec<Device<'a>>>,
    drains: OnceCell<Vec<Device<'a>>>,
    speed: OnceCell<Option<Speed>>,
    speeds: RefCell<BTreeMap<EntityId, Option<Speed>>>,
    utilisations: RefCell<BTreeMap<EntityId, Option<f64>>>,
    cleaned: RefCell<BTreeMap<EntityId, Rc<Cleaned<'a>>>>,
    loads: OnceCell<Vec<(Device<'a>, Load)>>,
    unmounts: OnceCell<Unmounts<'a>>,
    writers: OnceCell<Writers<'a>>,
    budgets: OnceCell<Budgets>,
    global_budget: OnceCell<DomainBudget>,
    waiters: OnceCell<Option<Vec<Waiter>>>,
    waiters_on: RefCell<BTreeMap<EntityId, Option<Rc<[Waiter]>>>>,
    sleepers: OnceCell<Sleepers>,
    busy_disks: OnceCell<Busy>,
    slept_for_others: OnceCell<BTreeMap<EntityId, BTreeSet<u32>>>,
    is_near_a_budget: OnceCell<bool>,
    released: OnceCell<Vec<Released>>,
    strict: OnceCell<Vec<Strict>>,
    crowded: OnceCell<Vec<Crowded>>,
    placed: OnceCell<Places>,
}

impl<'a> Derived<'a> {
    /// Derives from a window.
    pub fn of(window: &'a Window) -> Derived<'a> {
        Derived {
            window,
            seconds: window.seconds(),
            has_rates: missing::has_rates(window),
            page_size: dirty::page_size(window),
            behaviour: shown::behaviour(window),
            dirty: Dirty::of(window),
            devices: OnceCell::new(),
            devices_written: OnceCell::new(),
            disks: OnceCell::new(),
            drains: OnceCell::new(),
            speed: OnceCell::new(),
            speeds: RefCell::default(),
            utilisations: RefCell::default(),
            cleaned: RefCell::default(),
            loads: OnceCell::new(),
            unmounts: OnceCell::new(),
            writers: OnceCell::new(),
            budgets: OnceCell::new(),
            global_budget: OnceCell::new(),
            waiters: OnceCell::new(),
            waiters_on: RefCell::default(),
            sleepers: OnceCell::new(),
            busy_disks: OnceCell::new(),
            slept_for_others: OnceCell::new(),
            is_near_a_budget: OnceCell::new(),
            released: OnceCell::new(),
            strict: OnceCell::new(),
            crowded: OnceCell::new(),
            placed: OnceCell::new(),
        }
    }

    /// Whole block devices, layers included: [`device::devices`].
    pub fn devices(&self) -> &[Device<'a>] {
        self.devices.get_or_init(|| device::devices(self.window))
    }

    /// Devices that each cgroup was seen to write to.
    pub fn devices_written(&self) -> &DevicesWritten<'a> {
        self.devices_written.get_or_init(|| DevicesWritten::of(self.window))
    }

    /// Devices that are built on no other: [`device::disks`].
    pub fn disks(&self) -> &[Device<'a>] {
        self.disks.get_or_init(|| device::disks(self.window))
    }

    /// Devices at which dirty pages leave memory, most written first: [`device::drains`].
    pub fn drains(&self) -> &[Device<'a>] {
        self.drains.get_or_init(|| device::drains(self.window))
    }

    /// Write speed of the device with the most written bytes: [`Device::write_bandwidth`].
    pub fn speed(&self) -> Option<Speed> {
        *self.speed.get_or_init(|| self.drains().first().and_then(Device::write_bandwidth))
    }

    /// Write speed of a device: [`Device::write_bandwidth`]. Kept by device, because rules need it for each cgroup.
    pub(super) fn speed_of(&self, device: &Device<'_>) -> Option<Speed> {
        *self.speeds.borrow_mut().entry(device.id).or_insert_with(|| device.write_bandwidth())
    }

    /// Utilisation over the window of the busiest disk of a device: [`Device::utilisation`]. Kept by device, because rules need it for each cgroup.
    pub(super) fn utilisation_of(&self, device: &Device<'_>) -> Option<f64> {
        let busiest = || device.bottoms().iter().filter_map(Device::utilisation).max_by(f64::total_cmp);
        *self.utilisations.borrow_mut().entry(device.id).or_insert_with(busiest)
    }

    /// Bytes whose writeback completed on a device: [`Cleaned::of`]. Kept by device, because each burst and each rule need them.
    pub(super) fn cleaned_on(&self, device: &Device<'_>) -> Rc<Cleaned<'a>> {
        if let Some(kept) = self.cleaned.borrow().get(&device.id) {
            return Rc::clone(kept);
        }
        let cleaned = Rc::new(Cleaned::of(self, device));
        self.cleaned.borrow_mut().insert(device.id, Rc::clone(&cleaned));
        cleaned
    }

    /// Whether dirtying is faster than the device with the most written bytes.
    pub fn is_outrun(&self) -> bool {
        self.drains().first().is_some_and(|drain| {
            matches!((self.dirtied_once(), drain.write_bandwidth()), (Some(rate), Some(speed)) if rate > speed.value)
        })
    }

    /// Bytes that programs dirty per second. What a loop device writes becomes dirty a second time, as pages of its backing file,
    /// unless it writes past the page cache: the kernel counts it twice, and this counts it once.
    fn dirtied_once(&self) -> Option<f64> {
        let counted = self.dirty.dirtying_rate?;
        let is_direct = |device: &Device<'_>| {
            matches!(device.facts.map(|facts| &facts.stack), Some(Stack::Loop { dio: Some(true), .. }))
        };
        let all = device::devices(self.window);
        let again = all.iter().filter(|device| device.is_loop() && !is_direct(device)).filter_map(Device::write_rate);
        Some((counted - again.sum::<f64>()).max(0.0))
    }

    /// Whether programs dirty faster than one device writes: by the machine's counter where it is the only one, otherwise
    /// by that of its backing device.
    pub fn is_outrun_on(&self, device: &Device<'_>) -> bool {
        let rate = match self.drains().len() {
            0 | 1 => self.dirtied_once(),
            _ => {
                let dirtied = device.bdi().and_then(|bdi| bdi.growth.dirtied);
                dirtied.filter(|_| self.seconds > 0.0).map(|bytes| bytes.0 as f64 / self.seconds)
            }
        };
        matches!((rate, device.write_bandwidth()), (Some(rate), Some(speed)) if rate > speed.value)
    }

    /// Whether a device is busy nearly all the time, so that a program that [outruns it](Derived::is_outrun_on) keeps it full.
    pub fn has_no_time_left(&self, device: &Device<'_>) -> bool {
        device.utilisation().is_some_and(|busy| busy >= NO_TIME_LEFT)
    }

    /// Load of each disk while it was busy, in the order of [`Derived::disks`].
    pub fn loads(&self) -> &[(Device<'a>, Load)] {
        let busy = |disk: &Device<'a>| (*disk, load::busy(self, disk));
        self.loads.get_or_init(|| self.disks().iter().map(busy).collect())
    }

    /// Unmounts of overlays, and the filesystems that they write out.
    pub fn unmounts(&self) -> &Unmounts<'a> {
        self.unmounts.get_or_init(|| Unmounts::of(self))
    }

    /// Processes and the amounts they wrote: [`writer::writers`].
    pub fn writers(&self) -> &Writers<'a> {
        self.writers.get_or_init(|| writer::writers(self.window))
    }

    /// Budgets of every cgroup and device.
    pub fn budgets(&self) -> &Budgets {
        self.budgets.get_or_init(|| budget::budgets(self.window))
    }

    /// Budget of the machine: that of [`Derived::budgets`], without the work for each cgroup.
    pub fn global_budget(&self) -> &DomainBudget {
        match self.budgets.get() {
            Some(budgets) => &budgets.global,
            None => self.global_budget.get_or_init(|| budget::global(self.window)),
        }
    }

    /// Whether a cgroup had so much unwritten that the flusher writes for the amount in that cgroup, or pauses its tasks.
    pub fn is_near_a_budget(&self) -> bool {
        *self.is_near_a_budget.get_or_init(|| load::is_near_a_budget(self))
    }

    /// Writes that limits of cgroups released late: [`released::released`].
    pub fn released(&self) -> &[Released] {
        self.released.get_or_init(|| released::released(self))
    }

    /// Devices with a strict limit, sample by sample: [`strict::devices`].
    pub fn strict(&self) -> &[Strict] {
        self.strict.get_or_init(|| strict::devices(self))
    }

    /// Cgroups at whose small dirty limit tasks wait: [`crowded::crowded`].
    pub fn crowded(&self) -> &[Crowded] {
        self.crowded.get_or_init(|| crowded::crowded(self))
    }

    /// Devices to which the data of processes are written, from byte counts: [`placed::placed`].
    pub fn placed(&self) -> &Places {
        self.placed.get_or_init(|| placed::placed(self))
    }

    /// Processes that waited for I/O long enough to be felt, the longest first: [`waiting::waiters`].
    pub fn waiters(&self) -> Option<&[Waiter]> {
        self.waiters.get_or_init(|| waiting::waiters(self.window)).as_deref()
    }

    /// What the states of processes in the samples show.
    pub(super) fn sleepers(&self) -> &Sleepers {
        self.sleepers.get_or_init(|| Sleepers::of(self.window))
    }

    /// How many disks were busy around each sample.
    pub(super) fn busy_disks(&self) -> &Busy {
        self.busy_disks.get_or_init(|| Busy::of(self))
    }

    /// Processes that may have waited for a device: [`waiting::on`]. Rules ask for each cgroup.
    pub(super) fn waiters_on(&self, device: &Device<'_>) -> Option<Rc<[Waiter]>> {
        if let Some(known) = self.waiters_on.borrow().get(&device.id) {
            return known.clone();
        }
        let found: Option<Rc<[Waiter]>> = waiting::on(self, device).map(Rc::from);
        self.waiters_on.borrow_mut().insert(device.id, found.clone());
        found
    }

    /// Programs whose sleep was not for a device because of others, by process id: [`asleep::not_for`].
    pub(super) fn not_for(&self, device: &Device<'_>) -> Option<&BTreeSet<u32>> {
        let of = |one: &Device<'a>| (one.id, asleep::not_for(self, one));
        let all = || self.drains().iter().chain(self.disks()).map(of).collect();
        self.slept_for_others.get_or_init(all).get(&device.id)
    }

    /// Name of a cgroup for a sentence: [`cgroup::label`].
    pub fn label(&self, cgroup: EntityId) -> String {
        cgroup::label(self.window, cgroup)
    }

    /// Name of a cgroup, given by its inode number: [`throttle::label`].
    pub fn label_of_ino(&self, ino: u64) -> String {
        throttle::label(self.window, ino)
    }

    /// Steps that change settings to values they do not have: [`step::sysctls`].
    pub fn sysctls(&self, changes: &[(&str, u64)]) -> Vec<Step> {
        step::sysctls(self.window, changes)
    }

    /// The gap of a reading that a rule needs: [`missing::gap`].
    pub fn gap(&self, source: Source, what: &str) -> Gap {
        missing::gap(self.window, source, what)
    }

    /// The gap of a rate that a rule needs: [`missing::rate_gap`].
    pub fn rate_gap(&self, source: Source, what: &str) -> Gap {
        missing::rate_gap(self.window, source, what)
    }

    /// The verdict where one reading is missing.
    pub fn not_checked(&self, source: Source, what: &str) -> Verdict {
        missing::not_checked(self.window, source, what)
    }
}
