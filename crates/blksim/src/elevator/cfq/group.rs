//! Control groups of cfq (`struct cfq_group`): each has trees of queues by workload; the groups
//! are in a tree by virtual disk time.

use std::collections::BTreeSet;

use super::queue::{QueueId, ThinkTime};
use crate::block::request::{Priority, PriorityClass};

/// Kinds of queues within a class: async, sync and not worth idling for, sync and worth it (`enum
/// wl_type_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Workload {
    Async = 0,
    SyncNoIdle = 1,
    Sync = 2,
}

impl Workload {
    pub const ALL: [Self; 3] = [Self::Async, Self::SyncNoIdle, Self::Sync];
}

/// {real time, best effort} x {async, sync-noidle, sync}, and one for IDLE.
const NR_TREES: usize = 7;
/// 8 levels of two classes, and one queue for IDLE.
const NR_ASYNC: usize = 17;

/// The tree of a class and kind.
#[inline]
pub(super) fn tree_of(class: PriorityClass, workload: Workload) -> usize {
    match class {
        PriorityClass::Idle => NR_TREES - 1,
        _ => class as usize * 3 + workload as usize,
    }
}

/// The place of a queue in a tree: rank of its class (2.6.32 only), key, order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub tree: usize,
    pub rank: u8,
    pub key: i64,
    pub sequence: u64,
}

/// Queues with requests, in the order of their turns.
#[derive(Debug, Clone, Default)]
pub(super) struct ServiceTree {
    set: BTreeSet<(u8, i64, u64, QueueId)>,
    /// The think time of its queues as a whole.
    pub think: ThinkTime,
}

impl ServiceTree {
    pub fn insert(&mut self, place: Place, queue: QueueId) {
        self.set.insert((place.rank, place.key, place.sequence, queue));
    }

    pub fn remove(&mut self, place: Place, queue: QueueId) {
        let present = self.set.remove(&(place.rank, place.key, place.sequence, queue));
        debug_assert!(present, "queue {queue} is not in its tree");
    }

    /// Key and queue of the first.
    #[inline]
    pub fn first(&self) -> Option<(i64, QueueId)> {
        self.set.first().map(|&(_, key, _, queue)| (key, queue))
    }

    /// Key and queue of the last.
    pub fn last(&self) -> Option<(i64, QueueId)> {
        self.set.last().map(|&(_, key, _, queue)| (key, queue))
    }

    /// Key and queue of all, in order.
    pub fn queues(&self) -> impl Iterator<Item = (i64, QueueId)> + '_ {
        self.set.iter().map(|&(_, key, _, queue)| (key, queue))
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.set.len()
    }
}

/// The weights of a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupShare {
    /// The group that it is in; the root is its own parent.
    pub parent: u16,
    /// Its weight against its siblings.
    pub weight: u32,
    /// The weight of its own tasks against its child groups.
    pub leaf_weight: u32,
}

/// Default weight of a group of cgroup v1.
const DEFAULT_WEIGHT: u32 = 500;

impl Default for GroupShare {
    fn default() -> Self {
        Self { parent: 0, weight: DEFAULT_WEIGHT, leaf_weight: DEFAULT_WEIGHT }
    }
}

impl GroupShare {
    /// The root group, which starts with twice the default weight.
    pub const ROOT: Self =
        Self { parent: 0, weight: 2 * DEFAULT_WEIGHT, leaf_weight: 2 * DEFAULT_WEIGHT };
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub share: GroupShare,
    /// It, or a group below it, has done I/O: the kernel has made it (`cfq_pd_init`).
    met: bool,
    /// Weights that take effect when it is next entered (`new_weight`, `new_leaf_weight`).
    new_weight: Option<u32>,
    new_leaf_weight: Option<u32>,
    pub trees: [ServiceTree; NR_TREES],
    pub async_queues: [Option<QueueId>; NR_ASYNC],
    /// Queues with requests.
    pub nr_queues: u32,
    /// Requests in the device.
    pub dispatched: u32,
    pub think: ThinkTime,
    /// Smoothed numbers of busy real-time and best-effort queues.
    pub busy_average: [u64; 2],
    /// The workload in service when it lost the disk, and the time that it had left.
    pub saved: Option<(PriorityClass, Workload, u64)>,
    /// Its fraction of the disk, in units of 1 / [`WHOLE`].
    pub fraction: u64,
    virtual_time: u128,
    /// Its stamp among groups of equal virtual time, while it is in the tree.
    in_tree: Option<u64>,
    /// Active members: itself if it has requests, and its children.
    nr_active: u32,
    children_weight: u64,
}

impl Group {
    fn new(share: GroupShare) -> Self {
        Self {
            share,
            met: false,
            new_weight: None,
            new_leaf_weight: None,
            trees: Default::default(),
            async_queues: [None; NR_ASYNC],
            nr_queues: 0,
            dispatched: 0,
            think: ThinkTime::default(),
            busy_average: [0; 2],
            saved: None,
            fraction: WHOLE,
            virtual_time: 0,
            in_tree: None,
            nr_active: 0,
            children_weight: 0,
        }
    }

    /// It is there, without requests, since then (`cfq_init_cfqg_base`).
    fn begin(&mut self, since_ns: i64) {
        self.met = true;
        self.think.ended(since_ns);
        for tree in &mut self.trees {
            tree.think.ended(since_ns);
        }
    }

    pub fn virtual_time(&self) -> u128 {
        self.virtual_time
    }

    /// Busy queues of a class.
    #[inline]
    pub fn nr_busy(&self, class: PriorityClass) -> u64 {
        match class {
            PriorityClass::Idle => self.trees[NR_TREES - 1].len() as u64,
            _ => Workload::ALL
                .iter()
                .map(|&workload| self.trees[tree_of(class, workload)].len() as u64)
                .sum(),
        }
    }

    /// Busy async queues of both classes.
    pub fn nr_busy_async(&self) -> u64 {
        [PriorityClass::RealTime, PriorityClass::BestEffort]
            .iter()
            .map(|&class| self.trees[tree_of(class, Workload::Async)].len() as u64)
            .sum()
    }

    /// The smoothed number of busy queues, which rises fast and falls slowly.
    pub fn smooth_busy(&mut self, class: PriorityClass) -> u64 {
        let now = self.nr_busy(class);
        let average = &mut self.busy_average[usize::from(class == PriorityClass::RealTime)];
        let (low, high) = (now.min(*average), now.max(*average));
        *average = (3 * high + low + 2) / 4;
        *average
    }

    #[inline]
    pub fn average_busy(&self, class: PriorityClass) -> u64 {
        self.busy_average[usize::from(class == PriorityClass::RealTime)]
    }

    /// The slot of the async queue of a priority.
    pub fn async_slot(priority: Priority) -> usize {
        match priority.class {
            PriorityClass::RealTime => usize::from(priority.level),
            PriorityClass::BestEffort => 8 + usize::from(priority.level),
            PriorityClass::Idle => NR_ASYNC - 1,
        }
    }
}

/// The whole disk, as a [`Group::fraction`].
pub(super) const WHOLE: u64 = 1 << FRACTION_BITS;
pub(super) const FRACTION_BITS: u32 = 12;

/// All groups, and the tree of those with requests.
#[derive(Debug, Clone)]
pub(super) struct Groups {
    slots: Vec<Group>,
    tree: BTreeSet<(u128, u64, u16)>,
    sequence: u64,
    least_virtual_time: u128,
}

impl Groups {
    /// The root group alone. It is there for a while before the first request.
    pub fn new() -> Self {
        let mut root = Group::new(GroupShare::ROOT);
        root.begin(ThinkTime::LONG_IDLE);
        Self { slots: vec![root], tree: BTreeSet::new(), sequence: 0, least_virtual_time: 0 }
    }

    /// Creates a group if it does not exist.
    fn ensure(&mut self, group: u16) {
        let nr_groups = self.slots.len().max(usize::from(group) + 1);
        self.slots.resize_with(nr_groups, || Group::new(GroupShare::default()));
    }

    /// All groups, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Group> + '_ {
        self.slots.iter()
    }

    /// A group; `None` if no group has done I/O since it came to exist.
    #[inline]
    pub fn get(&self, group: u16) -> Option<&Group> {
        self.slots.get(usize::from(group))
    }

    /// True if this group has done I/O.
    #[inline]
    pub fn has_met(&self, group: u16) -> bool {
        self.get(group).is_some_and(|slot| slot.met)
    }

    /// The first request of a group: it begins now, as do groups above it that had none either
    /// (`blkg_lookup_create`). Its number says nothing about that of others.
    pub fn meet(&mut self, group: u16, now_ns: u64) {
        let mut at = group;
        while !self.slots[usize::from(at)].met {
            let slot = &mut self.slots[usize::from(at)];
            slot.begin(now_ns as i64);
            at = slot.share.parent;
        }
    }

    /// Sets the weights of a group. A parent that would be its own descendant is ignored.
    pub fn set_share(&mut self, group: u16, share: GroupShare) {
        self.ensure(group.max(share.parent));
        let active: Vec<u16> = self.tree.iter().map(|&(_, _, group)| group).collect();
        for &id in &active {
            self.leave(id);
        }
        let parent = if group == 0 || self.is_within(share.parent, group) {
            self.slots[usize::from(group)].share.parent
        } else {
            share.parent
        };
        self.slots[usize::from(group)].share = GroupShare {
            parent,
            weight: share.weight.max(1),
            leaf_weight: share.leaf_weight.max(1),
        };
        for id in active {
            self.enter(id);
        }
    }

    /// Changes a group's weights while it may have requests. They take effect when it is next entered
    /// into the tree, after its turn (`cfq_update_group_weight`, `cfq_update_group_leaf_weight`).
    pub fn set_weight(&mut self, group: u16, weight: u32, leaf_weight: u32) {
        let slot = &mut self.slots[usize::from(group)];
        slot.new_weight = Some(weight.max(1));
        slot.new_leaf_weight = Some(leaf_weight.max(1));
    }

    /// True if `group` is `ancestor` or below it.
    pub fn is_within(&self, group: u16, ancestor: u16) -> bool {
        let mut at = group;
        while at != ancestor {
            if at == 0 {
                return false;
            }
            at = self[at].share.parent;
        }
        true
    }

    /// The group that is served next.
    #[inline]
    pub fn first(&mut self) -> Option<u16> {
        let &(virtual_time, _, group) = self.tree.first()?;
        self.least_virtual_time = self.least_virtual_time.max(virtual_time);
        Some(group)
    }

    /// A queue of the group has requests now. A group that comes back is put `delay` behind the
    /// last, in virtual time.
    pub fn queue_added(&mut self, group: u16, delay: u64) {
        let slot = &mut self.slots[usize::from(group)];
        slot.nr_queues += 1;
        if slot.in_tree.is_some() {
            return;
        }
        slot.virtual_time = match self.tree.last() {
            Some(&(last, _, _)) => last + u128::from(delay),
            None => self.least_virtual_time,
        };
        self.enter(group);
    }

    /// A queue of the group has no more requests.
    pub fn queue_removed(&mut self, group: u16) {
        let slot = &mut self.slots[usize::from(group)];
        slot.nr_queues -= 1;
        if slot.nr_queues == 0 {
            slot.saved = None;
            self.leave(group);
        }
    }

    /// Charges disk time to the group.
    pub fn charge(&mut self, group: u16, amount: u64) {
        let slot = &self.slots[usize::from(group)];
        if slot.in_tree.is_none() {
            return;
        }
        let scaled = (u128::from(amount) << (2 * FRACTION_BITS)) / u128::from(slot.fraction);
        self.leave(group);
        self.slots[usize::from(group)].virtual_time += scaled;
        self.enter(group);
    }

    /// Puts a group into the tree and computes its fraction of the disk: its own tasks against its
    /// active children, and so on up to the root.
    fn enter(&mut self, group: u16) {
        self.sequence += 1;
        let slot = &mut self.slots[usize::from(group)];
        slot.in_tree = Some(self.sequence);
        self.tree.insert((slot.virtual_time, self.sequence, group));
        let mut newly_active = slot.nr_active == 0;
        slot.nr_active += 1;
        if let Some(leaf_weight) = slot.new_leaf_weight.take() {
            slot.share.leaf_weight = leaf_weight;
        }
        let leaf_weight = u64::from(slot.share.leaf_weight);
        slot.children_weight += leaf_weight;
        let mut fraction = WHOLE * leaf_weight / slot.children_weight;
        let mut at = group;
        while at != 0 {
            let slot = &mut self.slots[usize::from(at)];
            if newly_active {
                if let Some(weight) = slot.new_weight.take() {
                    slot.share.weight = weight;
                }
            }
            let GroupShare { parent, weight, .. } = slot.share;
            let above = &mut self.slots[usize::from(parent)];
            if newly_active {
                newly_active = above.nr_active == 0;
                above.nr_active += 1;
                above.children_weight += u64::from(weight);
            }
            fraction = fraction * u64::from(weight) / above.children_weight;
            at = parent;
        }
        self.slots[usize::from(group)].fraction = fraction.max(1);
    }

    fn leave(&mut self, group: u16) {
        let slot = &mut self.slots[usize::from(group)];
        let Some(sequence) = slot.in_tree.take() else { return };
        self.tree.remove(&(slot.virtual_time, sequence, group));
        slot.nr_active -= 1;
        slot.children_weight -= u64::from(slot.share.leaf_weight);
        let mut inactive = slot.nr_active == 0;
        let mut at = group;
        while inactive && at != 0 {
            let GroupShare { parent, weight, .. } = self.slots[usize::from(at)].share;
            let above = &mut self.slots[usize::from(parent)];
            above.nr_active -= 1;
            above.children_weight -= u64::from(weight);
            inactive = above.nr_active == 0;
            at = parent;
        }
    }
}

impl std::ops::Index<u16> for Groups {
    type Output = Group;

    #[inline]
    fn index(&self, group: u16) -> &Group {
        &self.slots[usize::from(group)]
    }
}

impl std::ops::IndexMut<u16> for Groups {
    #[inline]
    fn index_mut(&mut self, group: u16) -> &mut Group {
        &mut self.slots[usize::from(group)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_follow_the_weights_of_active_groups() {
        let mut groups = Groups::new();
        groups.set_share(1, GroupShare { weight: 100, ..GroupShare::default() });
        groups.set_share(2, GroupShare { weight: 300, ..GroupShare::default() });
        groups.set_share(3, GroupShare { parent: 2, ..GroupShare::default() });
        groups.queue_added(1, 0);
        assert_eq!(groups[1].fraction, WHOLE);
        groups.queue_added(3, 0);
        assert_eq!(groups[3].fraction, WHOLE * 3 / 4);
        // Tasks of group 2 itself compete with its child by leaf weight.
        groups.queue_added(2, 0);
        assert_eq!(groups[2].fraction, WHOLE / 2 * 3 / 4);
        groups.queue_removed(3);
        groups.charge(2, 1);
        assert_eq!(groups[2].fraction, WHOLE * 3 / 4);
        groups.queue_removed(2);
        groups.queue_removed(1);
        assert_eq!(groups.first(), None);
        assert!(groups.slots.iter().all(|group| group.children_weight == 0));
    }

    #[test]
    fn groups_take_turns_by_virtual_time() {
        let mut groups = Groups::new();
        groups.set_share(1, GroupShare { weight: 100, ..GroupShare::default() });
        groups.set_share(2, GroupShare { weight: 200, ..GroupShare::default() });
        groups.queue_added(1, 0);
        groups.queue_added(2, 0);
        let mut turns = [0_u32; 3];
        for _ in 0..3000 {
            let group = groups.first().unwrap();
            turns[usize::from(group)] += 1;
            groups.charge(group, 1_000_000);
        }
        assert_eq!(turns[1] + turns[2], 3000);
        assert!((990..=1010).contains(&turns[1]), "{turns:?}");
    }

    #[test]
    fn a_group_does_not_become_its_own_ancestor() {
        let mut groups = Groups::new();
        groups.set_share(1, GroupShare::default());
        groups.set_share(2, GroupShare { parent: 1, ..GroupShare::default() });
        groups.set_share(1, GroupShare { parent: 2, ..GroupShare::default() });
        assert!(groups.is_within(2, 1) && !groups.is_within(1, 2));
    }
}
