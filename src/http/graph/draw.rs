//! Draws a graph in memory and gives it as a PNG (`O-Q-PNG`). Nothing is started and no file is written.
//!
//! ```text
//! ┌ title ───────────────────────────┐
//! │ y │ plot: grid, notes, lines │ y2 │ key, if it is outside
//! │   └ moments of time ─────────┘    │
//! └──────────────────────────────────┘
//! ```
//!
//! *Cost*: three bytes a pixel, and of each line at most four points a column of pixels.

mod canvas;
mod line;

use basalt_query::Cancel;
use chrono_tz::Tz;

use super::format::TimeFormat;
use super::look::{Across, AxisLook, Down, Key, Look, Rgb};
use super::scale::{Scale, f64_of, moments};
use canvas::{Align, Canvas, Frame};
pub(crate) use line::Line;

/// Height of labels and of the title, pixels.
const TEXT: i32 = 12;
const TITLE: i32 = 16;
/// Space between things, pixels.
const GAP: i32 = 6;
/// Length of a line's sample in the key.
const SAMPLE: i32 = 24;
/// Longest name in the key and longest note, in letters.
const NAME_LETTERS_MAX: usize = 64;
/// Most names that are measured for the key; no picture has room for more.
const NAMES_MAX: usize = 1_000;
/// Most notes that are drawn.
const NOTES_MAX: usize = 200;

/// Colours of lines, told apart by most eyes; used again from the first on.
const COLOURS: &[Rgb] = &[
    (31, 119, 180),
    (214, 39, 40),
    (44, 160, 44),
    (255, 127, 14),
    (148, 103, 189),
    (23, 190, 207),
    (140, 86, 75),
    (227, 119, 194),
    (127, 127, 127),
    (188, 189, 34),
];

/// A graph to be drawn.
#[derive(Debug)]
pub(crate) struct Graph<'a> {
    pub(crate) look: &'a Look,
    pub(crate) lines: Vec<Line<'a>>,
    /// Seconds and text.
    pub(crate) notes: Vec<(i64, String)>,
    pub(crate) start_s: i64,
    pub(crate) end_s: i64,
    pub(crate) zone: Tz,
}

/// Why there is no picture.
#[derive(Debug)]
pub(crate) enum DrawError {
    /// Nobody waits for it any more.
    Cancelled,
    /// The font or the encoder failed, which is a fault of this program.
    Failed(String),
}

type Result<T> = std::result::Result<T, DrawError>;

impl Graph<'_> {
    /// The picture as a PNG.
    ///
    /// # Errors
    ///
    /// As [`DrawError`]; whether it is cancelled is looked at before each line.
    pub(crate) fn png(&self, cancel: &Cancel) -> Result<Vec<u8>> {
        let look = self.look;
        let mut pixels = vec![0_u8; pixels_len(look)];
        // White is taken for the colour that shows through.
        let background = look.background.unwrap_or((255, 255, 255));
        let canvas = Canvas::new(&mut pixels, (look.width, look.height), background)?;
        self.paint(&canvas, cancel)?;
        canvas.finish()?;
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, look.width, look.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        if look.background.is_none() {
            let (red, green, blue) = background;
            encoder.set_trns(vec![0, red, 0, green, 0, blue]);
        }
        let failed = |cause: png::EncodingError| DrawError::Failed(cause.to_string());
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&pixels).map_err(failed)?;
        writer.finish().map_err(failed)?;
        Ok(png)
    }

    fn paint(&self, canvas: &Canvas<'_>, cancel: &Cancel) -> Result<()> {
        let look = self.look;
        let has_right = self.lines.iter().any(|line| line.right);
        let (width, height) = canvas.size();
        let mut frame = Frame { left: GAP, top: GAP, right: width - 2 * GAP, bottom: height - TEXT - 3 * GAP };
        frame.top += GAP;
        if !look.title.is_empty() {
            canvas.text(&look.title, (width / 2, GAP), Align::Center, TITLE, look.foreground)?;
            frame.top += TITLE + GAP;
        }
        let entries = self.entries(canvas)?;
        if let Some(key) = look.key.filter(|key| key.outside && !entries.is_empty()) {
            let room = entries.iter().map(|entry| entry.width).max().unwrap_or(0) + 2 * GAP;
            frame.right -= room.min(width / 2);
            let beside = Frame { left: frame.right + GAP, right: width - GAP, ..frame };
            frame.right -= GAP;
            self.paint_key(canvas, key, beside, &entries)?;
        }
        let count = usize::try_from((frame.bottom - frame.top) / 40).unwrap_or(1).max(2);
        let left = self.scale(false, &look.left, count);
        let right = has_right.then(|| self.scale(true, &look.right, count));
        frame.left += Self::room(canvas, &left, &look.left)?;
        if let Some(right) = &right {
            frame.right -= Self::room(canvas, right, &look.right)? - 2 * GAP;
        }
        if frame.right - frame.left < 20 || frame.bottom - frame.top < 20 {
            return Ok(());
        }
        self.paint_time(canvas, frame)?;
        self.paint_axis(canvas, frame, &left, &look.left, true)?;
        if let Some(right) = &right {
            self.paint_axis(canvas, frame, right, &look.right, false)?;
        }
        canvas.outline(frame, look.foreground)?;
        for (place, line) in self.lines.iter().enumerate() {
            if cancel.is_cancelled() {
                return Err(DrawError::Cancelled);
            }
            let scale = if line.right { right.as_ref().unwrap_or(&left) } else { &left };
            let colour = colour(place);
            line.paint(canvas, frame, (scale, (self.start_s, self.end_s)), look, colour)?;
        }
        self.paint_notes(canvas, frame)?;
        if self.lines.iter().all(Line::is_empty) {
            let middle = (i32::midpoint(frame.left, frame.right), frame.top + (frame.bottom - frame.top) / 10);
            canvas.text("No data", middle, Align::Center, TITLE, look.foreground)?;
        }
        match look.key.filter(|key| !key.outside && !entries.is_empty()) {
            Some(key) => self.paint_key(canvas, key, frame.inset(GAP), &entries),
            None => Ok(()),
        }
    }

    /// The axis of the lines on one side.
    fn scale(&self, right: bool, axis: &AxisLook, count: usize) -> Scale {
        let values =
            self.lines.iter().filter(|line| line.right == right).flat_map(|line| line.values(self.look.smooth));
        let values = values.filter(|value| value.is_finite() && (!axis.log || *value > 0.0));
        let range = values.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        Scale::new(range.unwrap_or((0.0, 10.0)), (axis.low, axis.high), axis.log, count)
    }

    /// Pixels that an axis takes beside the plot.
    fn room(canvas: &Canvas<'_>, scale: &Scale, axis: &AxisLook) -> Result<i32> {
        let mut widest = 0;
        for mark in &scale.marks {
            widest = widest.max(canvas.width_of(&cut(&axis.format.show(*mark)), TEXT)?);
        }
        let label = if axis.label.is_empty() { 0 } else { TEXT + GAP };
        Ok(widest.min(canvas.size().0 / 4) + label + 2 * GAP)
    }

    fn paint_axis(
        &self,
        canvas: &Canvas<'_>,
        frame: Frame,
        scale: &Scale,
        axis: &AxisLook,
        is_left: bool,
    ) -> Result<()> {
        let (look, (width, _)) = (self.look, canvas.size());
        let grid = blend(look.foreground, look.background.unwrap_or((255, 255, 255)), 0.15);
        let mut last = i32::MAX;
        for mark in &scale.marks {
            let Some(y) = scale.place(*mark).map(|place| frame.y(place)).filter(|y| frame.holds_y(*y)) else {
                continue;
            };
            if is_left {
                canvas.line((frame.left, y), (frame.right, y), grid)?;
            }
            // Marks of a logarithmic axis may lie closer than their labels are high.
            if last.saturating_sub(y) < TEXT + 2 {
                continue;
            }
            last = y;
            let text = cut(&axis.format.show(*mark));
            let (at, tick, align) = if is_left {
                (frame.left - GAP, frame.left - GAP / 2, Align::Right)
            } else {
                (frame.right + GAP, frame.right + GAP / 2, Align::Left)
            };
            let edge = if is_left { frame.left } else { frame.right };
            canvas.line((tick.min(edge), y), (tick.max(edge), y), look.foreground)?;
            canvas.text(&text, (at, y - TEXT / 2), align, TEXT, look.foreground)?;
        }
        if axis.label.is_empty() {
            return Ok(());
        }
        let x = if is_left { GAP } else { width - TEXT - GAP };
        let x = if is_left || !self.key_is_outside() {
            x
        } else {
            frame.right + Self::room(canvas, scale, axis)? - TEXT - GAP
        };
        canvas.upright(&axis.label, (x, i32::midpoint(frame.top, frame.bottom)), TEXT, look.foreground)
    }

    fn key_is_outside(&self) -> bool {
        self.look.key.is_some_and(|key| key.outside)
    }

    fn paint_time(&self, canvas: &Canvas<'_>, frame: Frame) -> Result<()> {
        let look = self.look;
        let format = look.time.clone().unwrap_or_else(|| TimeFormat::for_range(self.end_s - self.start_s));
        let sample = canvas.width_of(&format.show(self.end_s, self.zone), TEXT)?.max(20);
        let count = ((frame.right - frame.left) / (sample + 4 * GAP)).clamp(1, 20);
        let grid = blend(look.foreground, look.background.unwrap_or((255, 255, 255)), 0.15);
        let mut free_from = i32::MIN;
        for moment in moments(self.start_s, self.end_s, self.zone, usize::try_from(count).unwrap_or(1)) {
            let x = frame.x(self.place(moment));
            canvas.line((x, frame.top), (x, frame.bottom), grid)?;
            canvas.line((x, frame.bottom), (x, frame.bottom + GAP / 2), look.foreground)?;
            let text = format.show(moment, self.zone);
            let half = canvas.width_of(&text, TEXT)? / 2;
            if x - half < free_from {
                continue;
            }
            free_from = x + half + GAP;
            let middle = x.min(canvas.size().0 - half - 1).max(half + 1);
            canvas.text(&text, (middle, frame.bottom + GAP - 1), Align::Center, TEXT, look.foreground)?;
        }
        Ok(())
    }

    /// Where in the range of time a second lies, from 0 to 1.
    fn place(&self, second: i64) -> f64 {
        line::place_of(second, (self.start_s, self.end_s))
    }

    fn paint_notes(&self, canvas: &Canvas<'_>, frame: Frame) -> Result<()> {
        let look = self.look;
        let colour = blend((200, 60, 160), look.foreground, 0.8);
        let inside = self.notes.iter().filter(|(second, _)| (self.start_s..=self.end_s).contains(second));
        let mut free_from = [i32::MIN; 3];
        for (second, text) in inside.take(NOTES_MAX) {
            let x = frame.x(self.place(*second));
            canvas.dashed((x, frame.top), frame.bottom, colour)?;
            let text = cut(text);
            let half = canvas.width_of(&text, TEXT)? / 2 + 3;
            let middle = x.min(frame.right - half).max(frame.left + half);
            // Up to three rows, so that notes near each other can be read.
            let Some(row) = free_from.iter().position(|free| *free <= middle - half) else { continue };
            if let Some(free) = free_from.get_mut(row) {
                *free = middle + half + 2;
            }
            let bottom = frame.bottom - GAP - i32::try_from(row).unwrap_or(0) * (TEXT + GAP);
            let plate = Frame { left: middle - half, top: bottom - TEXT - 3, right: middle + half, bottom };
            canvas.plate(plate, look.background.unwrap_or((255, 255, 254)))?;
            canvas.outline(plate, colour)?;
            canvas.text(&text, (middle, plate.top + 1), Align::Center, TEXT, look.foreground)?;
        }
        Ok(())
    }

    /// The lines that have a name to show.
    fn entries(&self, canvas: &Canvas<'_>) -> Result<Vec<Entry>> {
        let entry = |(place, line): (usize, &Line<'_>)| {
            let name = cut(&line.name);
            let width = canvas.width_of(&name, TEXT)? + SAMPLE + 2 * GAP;
            Ok(Entry { name, width, colour: colour(place) })
        };
        self.lines.iter().enumerate().take(NAMES_MAX).map(entry).collect()
    }

    fn paint_key(&self, canvas: &Canvas<'_>, key: Key, within: Frame, entries: &[Entry]) -> Result<()> {
        let row = TEXT + GAP / 2;
        let widest = entries.iter().map(|entry| entry.width).max().unwrap_or(0);
        let rows_max = usize::try_from((within.bottom - within.top - 2 * GAP) / row).unwrap_or(0).max(1);
        let columns = if key.horizontal {
            usize::try_from((within.right - within.left) / widest.max(1)).unwrap_or(1).max(1)
        } else {
            1
        };
        let shown = entries.len().min(rows_max * columns);
        let left_out = entries.len() - shown;
        // The last place says how many more there are.
        let shown = if left_out > 0 { shown - 1 } else { shown };
        let places = shown + usize::from(left_out > 0);
        let (columns, rows) = (columns.min(places), places.div_ceil(columns.min(places).max(1)));
        let width = widest * i32::try_from(columns).unwrap_or(1) + GAP;
        let height = row * i32::try_from(rows).unwrap_or(1) + GAP;
        let left = match key.across {
            Across::Left => within.left,
            Across::Center => (within.left + within.right - width) / 2,
            Across::Right => within.right - width,
        };
        let top = match key.down {
            Down::Top => within.top,
            Down::Center => (within.top + within.bottom - height) / 2,
            Down::Bottom => within.bottom - height,
        };
        let plate = Frame { left, top, right: left + width, bottom: top + height };
        let look = self.look;
        if let Some(background) = look.background {
            canvas.plate(plate, background)?;
        }
        if key.boxed {
            canvas.outline(plate, look.foreground)?;
        }
        for place in 0..places {
            let (column, line) = (place % columns, place / columns);
            let x = left + GAP / 2 + widest * i32::try_from(column).unwrap_or(0);
            let y = top + GAP / 2 + row * i32::try_from(line).unwrap_or(0);
            if let Some(entry) = entries.get(place).filter(|_| place < shown) {
                line::sample(canvas, (x, y + TEXT / 2), SAMPLE, look.style, entry.colour)?;
                canvas.text(&entry.name, (x + SAMPLE + GAP, y), Align::Left, TEXT, look.foreground)?;
            } else {
                let more = format!("and {} more", self.lines.len() - shown);
                canvas.text(&more, (x + SAMPLE + GAP, y), Align::Left, TEXT, look.foreground)?;
            }
        }
        Ok(())
    }
}

/// A line's name in the key.
struct Entry {
    name: String,
    width: i32,
    colour: Rgb,
}

fn colour(place: usize) -> Rgb {
    COLOURS.get(place % COLOURS.len()).copied().unwrap_or_default()
}

fn cut(text: &str) -> String {
    let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
    if text.chars().count() <= NAME_LETTERS_MAX {
        return text.chars().map(clean).collect();
    }
    text.chars().take(NAME_LETTERS_MAX - 1).map(clean).chain(['…']).collect()
}

/// `share` of one colour in another.
fn blend(from: Rgb, into: Rgb, share: f64) -> Rgb {
    let one = |from: u8, into: u8| {
        let value = f64::from(from) * share + f64::from(into) * (1.0 - share);
        u8::try_from(canvas::pixel(value)).unwrap_or(u8::MAX)
    };
    (one(from.0, into.0), one(from.1, into.1), one(from.2, into.2))
}

fn pixels_len(look: &Look) -> usize {
    let side = |pixels: u32| usize::try_from(pixels).unwrap_or(0);
    side(look.width) * side(look.height) * 3
}

/// How many points a line of so many pixels needs at most.
pub(crate) fn points_enough(width: u32) -> usize {
    usize::try_from(width).unwrap_or(0) * 4
}

#[cfg(test)]
mod tests;
