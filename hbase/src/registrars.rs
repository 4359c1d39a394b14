//! Who is asked where the cluster's parts are, one after the other: whoever answered last is the first, so that one which is off is
//! not waited for by each question.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::connection::Address;

/// Masters, region servers, or `ZooKeeper`'s servers.
#[derive(Debug)]
pub(crate) struct Registrars {
    all: Vec<Address>,
    /// The place of the one that answered last. `Relaxed`: nothing else is handed over by it, and any place is good.
    first: AtomicUsize,
}

impl Registrars {
    pub(crate) fn new(all: Vec<Address>) -> Self {
        Self { all, first: AtomicUsize::new(0) }
    }

    /// Each once, with how many are left, itself among them.
    pub(crate) fn in_turn(&self) -> impl Iterator<Item = (u32, &Address)> {
        let (before, behind) = self.all.split_at(self.first.load(Ordering::Relaxed).min(self.all.len()));
        let left = (1..=u32::try_from(self.all.len()).unwrap_or(u32::MAX)).rev();
        left.zip(behind.iter().chain(before))
    }

    /// That one answered.
    pub(crate) fn believe(&self, address: &Address) {
        if let Some(place) = self.all.iter().position(|one| one == address) {
            self.first.store(place, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_answered_last_is_asked_first_and_nobody_is_left_out() {
        let all = ["a:1", "b:1", "c:1"].map(|text| Address::parse(text).unwrap());
        let registrars = Registrars::new(all.to_vec());
        let order = || registrars.in_turn().map(|(left, one)| format!("{left} {one}")).collect::<Vec<_>>();
        assert_eq!(order(), ["3 a:1", "2 b:1", "1 c:1"]);
        registrars.believe(&all[1]);
        assert_eq!(order(), ["3 b:1", "2 c:1", "1 a:1"]);
        assert_eq!(Registrars::new(Vec::new()).in_turn().count(), 0);
    }
}
