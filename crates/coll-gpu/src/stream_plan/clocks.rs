//! Which waits are needed: each stream has a clock of how far it is behind every other (Mattern's and Fidge's vector
//! clocks), and a wait that it has already, by its own order or by way of others, is left out.

use super::{Deed, Origin, StreamPart, Work};

/// What work may have to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// A moment of a stream, after so many pieces of work: index into the points.
    Point(usize),
    /// The porter is done with a parcel.
    Carried(u32),
}

struct Point {
    stream: u32,
    position: u32,
    /// What the stream had waited for by then.
    clock: Vec<u32>,
    /// Where the event is recorded, if it is.
    after: usize,
    origin: Origin,
    event: Option<u32>,
}

/// The work so far, and what is known of its order.
pub(super) struct Clocks {
    streams: Vec<StreamPart>,
    positions: Vec<u32>,
    clocks: Vec<Vec<u32>>,
    points: Vec<Point>,
    /// The last point of each stream.
    last: Vec<Option<usize>>,
    work: Vec<Work>,
    /// For each event, its point.
    events: Vec<usize>,
    /// For each parcel, the point at which it is posted, and the streams that have collected it.
    parcels: Vec<(usize, Vec<u32>)>,
}

impl Clocks {
    /// What is on the caller's streams before counts as a piece of work: those who begin after it have to wait.
    pub(super) fn new(streams: Vec<StreamPart>, is_callers: impl Fn(u32) -> bool) -> Clocks {
        let count = streams.len();
        Clocks {
            positions: (0..count as u32).map(|stream| u32::from(is_callers(stream))).collect(),
            clocks: vec![vec![0; count]; count],
            points: Vec::new(),
            last: vec![None; count],
            work: Vec::new(),
            events: Vec::new(),
            parcels: Vec::new(),
            streams,
        }
    }

    /// Adds work to a stream.
    pub(super) fn push(&mut self, stream: u32, deed: Deed, origin: Origin) {
        self.work.push(Work { stream, deed, origin });
        self.positions[stream as usize] += 1;
    }

    /// This moment of a stream.
    pub(super) fn now(&mut self, stream: u32, origin: Origin) -> Moment {
        Moment::Point(self.point(stream, origin))
    }

    fn point(&mut self, stream: u32, origin: Origin) -> usize {
        let position = self.positions[stream as usize];
        if let Some(point) = self.last[stream as usize].filter(|&at| self.points[at].position == position) {
            return point;
        }
        let clock = self.clocks[stream as usize].clone();
        self.points.push(Point { stream, position, clock, after: self.work.len(), origin, event: None });
        let point = self.points.len() - 1;
        self.last[stream as usize] = Some(point);
        point
    }

    /// Posts the next parcel on a stream; the moment when it has been carried.
    pub(super) fn post(&mut self, stream: u32, origin: Origin) -> Moment {
        let number = self.parcels.len() as u32;
        self.push(stream, Deed::Post(number), origin);
        let point = self.point(stream, origin);
        self.parcels.push((point, Vec::new()));
        Moment::Carried(number)
    }

    /// Has a stream go on only after all these moments, the latest of which are waited for first: they may have others
    /// in them.
    pub(super) fn after(&mut self, stream: u32, moments: &[Moment], origin: Origin) {
        let mut waits: Vec<(usize, Option<u32>)> = moments
            .iter()
            .map(|moment| match *moment {
                Moment::Point(point) => (point, None),
                Moment::Carried(parcel) => (self.parcels[parcel as usize].0, Some(parcel)),
            })
            .collect();
        waits.sort_unstable_by_key(|&wait| std::cmp::Reverse(wait));
        waits.dedup();
        for (point, parcel) in waits {
            match parcel {
                None => self.wait(stream, point, origin),
                Some(parcel) => self.collect(stream, parcel, origin),
            }
        }
    }

    fn wait(&mut self, stream: u32, point: usize, origin: Origin) {
        let Point { stream: other, position, .. } = self.points[point];
        if other == stream || self.clocks[stream as usize][other as usize] >= position {
            return;
        }
        let event = match self.points[point].event {
            Some(event) => event,
            None => {
                self.events.push(point);
                let event = self.events.len() as u32 - 1;
                self.points[point].event = Some(event);
                event
            }
        };
        self.push(stream, Deed::Wait(event), origin);
        self.learn(stream, point);
    }

    /// Whoever has waited for a parcel knows what the stream knew that posted it.
    fn collect(&mut self, stream: u32, parcel: u32, origin: Origin) {
        let (point, collectors) = &mut self.parcels[parcel as usize];
        if collectors.contains(&stream) {
            return;
        }
        collectors.push(stream);
        let point = *point;
        self.push(stream, Deed::Collect(parcel), origin);
        self.learn(stream, point);
    }

    fn learn(&mut self, stream: u32, point: usize) {
        let Point { stream: other, position, clock: theirs, .. } = &self.points[point];
        let clock = &mut self.clocks[stream as usize];
        for (mine, theirs) in clock.iter_mut().zip(theirs) {
            *mine = (*mine).max(*theirs);
        }
        if *other != stream {
            clock[*other as usize] = clock[*other as usize].max(*position);
        }
    }

    /// All work, with the events recorded that are waited for.
    pub(super) fn finish(self) -> (Vec<StreamPart>, u32, Vec<Work>) {
        let mut records: Vec<(usize, u32)> =
            (0u32..).zip(&self.events).map(|(event, &point)| (self.points[point].after, event)).collect();
        records.sort_unstable();
        let mut all = Vec::with_capacity(self.work.len() + records.len());
        let mut records = records.into_iter().peekable();
        for (at, work) in self.work.into_iter().enumerate() {
            while let Some((_, event)) = records.next_if(|(after, _)| *after <= at) {
                let Point { stream, origin, .. } = self.points[self.events[event as usize]];
                all.push(Work { stream, deed: Deed::Record(event), origin });
            }
            all.push(work);
        }
        // A record that nothing comes after would have nobody to wait for it.
        debug_assert!(records.next().is_none());
        (self.streams, self.events.len() as u32, all)
    }
}
