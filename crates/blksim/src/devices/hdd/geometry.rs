//! Geometry: the places of sectors, and the arm's way to them.
//!
//! The track order is serpentine: some tracks inwards on one head, back on the next. Everything
//! follows from one function: the *media clock* of a sector, the time of reading from sector 0 up
//! to it without interruption. Tracks are skewed by exactly the time of a switch, so a sector's
//! angle is its media clock modulo one revolution.

/// Zones with as many sectors a track each.
#[derive(Debug, Clone, Copy)]
struct Zone {
    first_sector: u64,
    first_cylinder: u32,
    sectors_per_track: u64,
    /// Media clock of its first sector.
    clock_ns: u64,
}

/// A place on the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub cylinder: u32,
    pub clock_ns: u64,
}

/// Geometry and arm of a disk.
#[derive(Debug, Clone)]
pub struct Geometry {
    pub revolution_ns: u64,
    pub capacity_sectors: u64,
    zones: Vec<Zone>,
    cylinders_per_zone: u32,
    heads: u64,
    band: u64,
    track_switch_ns: u64,
    head_switch_ns: u64,
    curve: SeekCurve,
    /// The distance of a seek in less than 1, 2, … steps of 2^`step_bits` ns. A table, because
    /// computing every seek took a tenth of all instructions.
    reach: Vec<u32>,
    step_bits: u32,
}

/// Steps of [`Geometry::farthest`] in a revolution, at most.
const REACH_STEPS: u64 = 512;

/// The parameters of a seek curve: near + √d over d cylinders for short seeks, linear for long
/// ones.
#[derive(Debug, Clone, Copy)]
pub struct SeekFigures {
    pub near_ns: f64,
    pub near_root_ns: f64,
    pub far_ns: u64,
    pub far_slope_ps: u64,
    /// Cylinders.
    pub far_from: u32,
    pub track_switch_ns: u64,
}

impl SeekFigures {
    #[inline]
    fn near_ns(&self, distance: u32) -> u64 {
        if distance <= 1 {
            // The neighbouring track is reached within the skew.
            return u64::from(distance) * self.track_switch_ns;
        }
        (self.near_ns + self.near_root_ns * f64::from(distance).sqrt()) as u64
    }
}

/// Time of a seek by its distance. No seek is quicker than a shorter one.
#[derive(Debug, Clone, Copy)]
pub struct SeekCurve {
    figures: SeekFigures,
    /// Time of the longest short seek: parameters fitted to two parts need not meet there.
    least_far_ns: u64,
}

impl SeekCurve {
    pub fn new(figures: SeekFigures) -> Self {
        Self { figures, least_far_ns: figures.near_ns(figures.far_from.saturating_sub(1)) }
    }

    /// Nanoseconds for a distance in cylinders.
    #[inline]
    pub fn ns(&self, distance: u32) -> u64 {
        let figures = &self.figures;
        if distance <= 1 || distance < figures.far_from {
            return figures.near_ns(distance);
        }
        let far_ns = figures.far_ns + u64::from(distance) * figures.far_slope_ps / 1000;
        far_ns.max(self.least_far_ns)
    }
}

/// The parameters of a geometry.
#[derive(Debug, Clone, Copy)]
pub struct Figures {
    pub rpm: u64,
    pub cylinders: u64,
    pub heads: u64,
    pub zones: u64,
    pub outer_sectors: u64,
    pub inner_sectors: u64,
    pub band: u64,
    pub head_switch_ns: u64,
    pub curve: SeekCurve,
}

impl Geometry {
    pub fn new(figures: &Figures) -> Self {
        let revolution_ns = 60_000_000_000 / figures.rpm;
        let cylinders_per_zone = figures.cylinders / figures.zones;
        let mut geometry = Self {
            revolution_ns,
            capacity_sectors: 0,
            zones: Vec::new(),
            cylinders_per_zone: cylinders_per_zone as u32,
            heads: figures.heads,
            band: figures.band,
            track_switch_ns: figures.curve.ns(1),
            head_switch_ns: figures.head_switch_ns,
            curve: figures.curve,
            reach: Vec::new(),
            step_bits: (revolution_ns / REACH_STEPS).checked_ilog2().map_or(0, |bits| bits + 1),
        };
        geometry.reach = geometry.work_out_reach(figures.cylinders as u32);
        let tracks = cylinders_per_zone * figures.heads;
        let mut clock_ns = 0;
        for index in 0..figures.zones {
            // Sectors a track fall evenly from the outermost to the innermost zone.
            let fall = figures.outer_sectors - figures.inner_sectors;
            let steps = (figures.zones - 1).max(1);
            let sectors_per_track = figures.outer_sectors - fall * index / steps;
            geometry.zones.push(Zone {
                first_sector: geometry.capacity_sectors,
                first_cylinder: (index * cylinders_per_zone) as u32,
                sectors_per_track,
                clock_ns,
            });
            geometry.capacity_sectors += tracks * sectors_per_track;
            clock_ns += tracks * revolution_ns + geometry.switches_ns(tracks);
        }
        geometry
    }

    /// Tracks of a serpentine band from track `track` of a zone on: (band, width).
    #[inline]
    fn band_of(&self, track: u64) -> (u64, u64) {
        let band = track / (self.band * self.heads);
        let width = self.band.min(u64::from(self.cylinders_per_zone) - band * self.band);
        (band, width)
    }

    /// Time of the switches before track `track` of a zone (and of those that end the zone).
    fn switches_ns(&self, track: u64) -> u64 {
        let head_changes = if track == u64::from(self.cylinders_per_zone) * self.heads {
            u64::from(self.cylinders_per_zone).div_ceil(self.band) * self.heads
        } else {
            let (band, width) = self.band_of(track);
            band * self.heads + (track - band * self.band * self.heads) / width
        };
        (track - head_changes) * self.track_switch_ns + head_changes * self.head_switch_ns
    }

    #[inline]
    fn zone_of(&self, sector: u64) -> &Zone {
        let next = self.zones.partition_point(|zone| zone.first_sector <= sector);
        &self.zones[next.max(1) - 1]
    }

    /// The place of a sector; the sector past the last one is allowed.
    #[inline]
    pub fn locate(&self, sector: u64) -> Place {
        let zone = self.zone_of(sector.min(self.capacity_sectors - 1));
        let within = sector - zone.first_sector;
        let last_track = u64::from(self.cylinders_per_zone) * self.heads - 1;
        let track = (within / zone.sectors_per_track).min(last_track);
        let rest = within - track * zone.sectors_per_track;
        let (band, width) = self.band_of(track);
        let in_band = track - band * self.band * self.heads;
        let head = in_band / width;
        let step = in_band - head * width;
        let inwards = head % 2 == 0;
        let offset = band * self.band + if inwards { step } else { width - 1 - step };
        let head_changes = band * self.heads + head;
        let switches_ns =
            (track - head_changes) * self.track_switch_ns + head_changes * self.head_switch_ns;
        Place {
            cylinder: zone.first_cylinder + offset as u32,
            clock_ns: zone.clock_ns
                + track * self.revolution_ns
                + switches_ns
                + rest * self.revolution_ns / zone.sectors_per_track,
        }
    }

    /// For each step of a revolution, the farthest distance in cylinders of a seek that takes less
    /// than the step's end.
    fn work_out_reach(&self, cylinders: u32) -> Vec<u32> {
        let ends_ns = (1..).map(|step: u64| step << self.step_bits);
        let steps = (self.revolution_ns >> self.step_bits) as usize + 1;
        let mut distance = 0;
        let farthest = |end_ns| {
            while distance + 1 < cylinders && self.curve.ns(distance + 1) < end_ns {
                distance += 1;
            }
            distance
        };
        ends_ns.take(steps).map(farthest).collect()
    }

    /// A distance beyond which every seek takes longer than this time, which is less than a
    /// revolution.
    #[inline]
    pub fn farthest(&self, seek_ns: u64) -> u32 {
        self.reach[(seek_ns >> self.step_bits) as usize]
    }

    /// Time of a seek over so many cylinders.
    #[inline]
    pub fn seek_ns(&self, distance: u32) -> u64 {
        self.curve.ns(distance)
    }

    /// The number of sectors from `first` on that pass under the head within `elapsed_ns`, at most
    /// `limit`.
    pub fn sectors_within(&self, first: u64, elapsed_ns: u64, limit: u64) -> u64 {
        if elapsed_ns == 0 {
            return 0;
        }
        let start_ns = self.locate(first).clock_ns;
        let limit = limit.min(self.capacity_sectors - first);
        let (mut low, mut high) = (0, limit);
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.locate(first + middle).clock_ns - start_ns <= elapsed_ns {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }

    /// Bytes a second of the zone that holds `sector`, switches included, for sequential transfers.
    pub fn media_rate(&self, sector: u64) -> f64 {
        let zone = self.zone_of(sector);
        let band = self.band as f64;
        let switch_ns =
            ((band - 1.0) * self.track_switch_ns as f64 + self.head_switch_ns as f64) / band;
        zone.sectors_per_track as f64 * 512.0 * 1e9 / (self.revolution_ns as f64 + switch_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVE: SeekFigures = SeekFigures {
        near_ns: 1000.0,
        near_root_ns: 10.0,
        far_ns: 2000,
        far_slope_ps: 1000,
        far_from: 50,
        track_switch_ns: 500,
    };

    fn geometry(cylinders: u64, heads: u64, zones: u64, band: u64) -> Geometry {
        Geometry::new(&figures(cylinders, heads, zones, band))
    }

    fn figures(cylinders: u64, heads: u64, zones: u64, band: u64) -> Figures {
        Figures {
            rpm: 6000,
            cylinders,
            heads,
            zones,
            outer_sectors: 200,
            inner_sectors: 100,
            band,
            head_switch_ns: 700,
            curve: SeekCurve::new(CURVE),
        }
    }

    #[test]
    fn no_seek_within_a_time_leads_farther_than_looked_up() {
        let curve = SeekCurve::new(SeekFigures { far_slope_ps: 4_000_000, ..CURVE });
        let geometry = Geometry::new(&Figures { curve, ..figures(3000, 2, 3, 4) });
        let step_ns = geometry.revolution_ns / 256;
        for turn_ns in (0..geometry.revolution_ns).step_by(997) {
            let farthest = geometry.farthest(turn_ns);
            assert!(farthest == 2999 || curve.ns(farthest + 1) > turn_ns, "{turn_ns}");
            assert!(curve.ns(farthest) <= turn_ns + step_ns, "{turn_ns}");
        }
        assert!(geometry.farthest(0) < 50 && geometry.farthest(geometry.revolution_ns - 1) > 2400);
    }

    #[test]
    fn no_seek_is_quicker_than_a_shorter_one() {
        // Long seeks that begin far below where short ones end, at any distance.
        for far_from in [2, 50, 2000] {
            let curve = SeekCurve::new(SeekFigures { far_ns: 3, far_from, ..CURVE });
            let times_ns: Vec<_> = (1..3000).map(|distance| curve.ns(distance)).collect();
            assert!(times_ns.is_sorted(), "long from {far_from} cylinders on");
            assert_eq!(times_ns[0], CURVE.track_switch_ns);
        }
        let curve = SeekCurve::new(CURVE);
        assert_eq!([curve.ns(0), curve.ns(49), curve.ns(50)], [0, 1070, 2050]);
    }

    #[test]
    fn the_media_clock_runs_without_gaps_or_steps_back() {
        let geometry = geometry(30, 3, 3, 4);
        let mut last = geometry.locate(0);
        assert_eq!((last.cylinder, last.clock_ns), (0, 0));
        for sector in 1..=geometry.capacity_sectors {
            let place = geometry.locate(sector);
            let step = place.clock_ns - last.clock_ns;
            let sector_ns = geometry.revolution_ns / 100;
            assert!(step > 0 && step <= sector_ns + 701, "{sector}: {step}");
            last = place;
        }
        assert_eq!(last.cylinder, geometry.locate(geometry.capacity_sectors - 1).cylinder);
    }

    #[test]
    fn tracks_go_in_serpentines() {
        let geometry = geometry(8, 2, 1, 4);
        let cylinders: Vec<_> =
            (0..16).map(|track| geometry.locate(track * 200).cylinder).collect();
        assert_eq!(cylinders, [0, 1, 2, 3, 3, 2, 1, 0, 4, 5, 6, 7, 7, 6, 5, 4]);
    }

    #[test]
    fn sectors_within_inverts_the_clock() {
        let geometry = geometry(30, 3, 3, 4);
        for first in [0, 150, 4000] {
            for count in [1, 49, 333] {
                let elapsed_ns =
                    geometry.locate(first + count).clock_ns - geometry.locate(first).clock_ns;
                assert_eq!(geometry.sectors_within(first, elapsed_ns, 1000), count);
            }
        }
    }
}
