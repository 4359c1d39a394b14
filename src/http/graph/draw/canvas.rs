//! What is drawn on: lines, plates and text in pixels, by the crate plotters.

use std::sync::OnceLock;

use plotters::backend::BitMapBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea as _};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color as _, FontDesc, FontFamily, FontStyle, FontTransform, IntoTextStyle as _, RGBColor, TextStyle, register_font,
};

use super::super::look::Rgb;
use super::{DrawError, Result};

/// `DejaVu` Sans, cut down to the letters of Latin, Greek and Cyrillic; its licence stands beside it.
static FONT: &[u8] = include_bytes!("../font/DejaVuSans.ttf");

/// Where a text stands against its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) right: i32,
    pub(super) bottom: i32,
}

impl Frame {
    /// The pixel column at a place from 0 to 1.
    pub(super) fn x(&self, place: f64) -> i32 {
        self.left.saturating_add(pixel(place * f64::from(self.right - self.left)))
    }

    /// The pixel row at a place from 0, the bottom, to 1.
    pub(super) fn y(&self, place: f64) -> i32 {
        self.bottom.saturating_sub(pixel(place * f64::from(self.bottom - self.top)))
    }

    pub(super) fn holds_y(&self, y: i32) -> bool {
        (self.top..=self.bottom).contains(&y)
    }

    pub(super) fn inset(self, by: i32) -> Self {
        Self { left: self.left + by, top: self.top + by, right: self.right - by, bottom: self.bottom - by }
    }
}

/// The nearest whole pixel; what lies far out stays far out.
#[expect(clippy::cast_possible_truncation, reason = "held within 24 bits")]
pub(super) fn pixel(value: f64) -> i32 {
    value.clamp(-8_388_608.0, 8_388_608.0).round() as i32
}

/// A picture under construction.
pub(super) struct Canvas<'a> {
    area: DrawingArea<BitMapBackend<'a>, Shift>,
}

fn failed(cause: impl std::fmt::Display) -> DrawError {
    DrawError::Failed(cause.to_string())
}

fn rgb((red, green, blue): Rgb) -> RGBColor {
    RGBColor(red, green, blue)
}

fn font(height: i32) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, f64::from(height), FontStyle::Normal)
}

impl<'a> Canvas<'a> {
    /// An empty picture of these pixels, three bytes each.
    pub(super) fn new(pixels: &'a mut [u8], size: (u32, u32), background: Rgb) -> Result<Self> {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        let known = REGISTERED.get_or_init(|| register_font("sans-serif", FontStyle::Normal, FONT).is_ok());
        if !known {
            return Err(DrawError::Failed("the built-in font cannot be read".to_owned()));
        }
        let area = BitMapBackend::with_buffer(pixels, size).into_drawing_area();
        area.fill(&rgb(background)).map_err(failed)?;
        Ok(Self { area })
    }

    pub(super) fn size(&self) -> (i32, i32) {
        let (width, height) = self.area.dim_in_pixel();
        (i32::try_from(width).unwrap_or(0), i32::try_from(height).unwrap_or(0))
    }

    pub(super) fn finish(self) -> Result<()> {
        self.area.present().map_err(failed)
    }

    pub(super) fn width_of(&self, text: &str, height: i32) -> Result<i32> {
        if text.is_empty() {
            return Ok(0);
        }
        let (width, _) =
            self.area.estimate_text_size(text, &font(height).into_text_style(&self.area)).map_err(failed)?;
        Ok(i32::try_from(width).unwrap_or(0))
    }

    /// A text whose top is at the point's height.
    pub(super) fn text(&self, text: &str, at: (i32, i32), align: Align, height: i32, colour: Rgb) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let across = match align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        // The crate's box of a text ends below its lowest letters, and begins as much above its highest.
        let at = (at.0, at.1 + height / 4 + 1);
        let colour = rgb(colour);
        let style = TextStyle::from(font(height)).color(&colour).pos(Pos::new(across, VPos::Top));
        self.area.draw(&Text::new(text, at, style)).map_err(failed)
    }

    /// A text that is read from below, its left side at `x` and its middle at `y`.
    pub(super) fn upright(&self, text: &str, (x, y): (i32, i32), height: i32, colour: Rgb) -> Result<()> {
        let half = self.width_of(text, height)? / 2;
        let colour = rgb(colour);
        let style = TextStyle::from(font(height).transform(FontTransform::Rotate270))
            .color(&colour)
            .pos(Pos::new(HPos::Left, VPos::Top));
        self.area.draw(&Text::new(text, (x, y + half), style)).map_err(failed)
    }

    pub(super) fn line(&self, from: (i32, i32), to: (i32, i32), colour: Rgb) -> Result<()> {
        self.path(vec![from, to], colour, 1)
    }

    pub(super) fn path(&self, points: Vec<(i32, i32)>, colour: Rgb, width: u32) -> Result<()> {
        self.area.draw(&PathElement::new(points, rgb(colour).stroke_width(width))).map_err(failed)
    }

    /// From the point down to `bottom`.
    pub(super) fn dashed(&self, (x, top): (i32, i32), bottom: i32, colour: Rgb) -> Result<()> {
        let mut y = top;
        while y < bottom {
            self.line((x, y), (x, (y + 4).min(bottom)), colour)?;
            y += 8;
        }
        Ok(())
    }

    pub(super) fn outline(&self, frame: Frame, colour: Rgb) -> Result<()> {
        let corners = [(frame.left, frame.top), (frame.right, frame.bottom)];
        self.area.draw(&Rectangle::new(corners, rgb(colour).stroke_width(1))).map_err(failed)
    }

    pub(super) fn plate(&self, frame: Frame, colour: Rgb) -> Result<()> {
        let corners = [(frame.left, frame.top), (frame.right, frame.bottom)];
        self.area.draw(&Rectangle::new(corners, rgb(colour).filled())).map_err(failed)
    }

    pub(super) fn disc(&self, at: (i32, i32), radius: u32, colour: Rgb) -> Result<()> {
        self.area.draw(&Circle::new(at, radius, rgb(colour).filled())).map_err(failed)
    }

    pub(super) fn circle(&self, at: (i32, i32), radius: u32, colour: Rgb) -> Result<()> {
        self.area.draw(&Circle::new(at, radius, rgb(colour).stroke_width(1))).map_err(failed)
    }
}
