//! What a graph looks like, each wish a value of its own type.

use super::format::{NumberFormat, TimeFormat};

/// Everything that a request may wish.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Look {
    /// Pixels.
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) title: String,
    pub(crate) left: AxisLook,
    pub(crate) right: AxisLook,
    /// `None` for what suits the range.
    pub(crate) time: Option<TimeFormat>,
    pub(crate) key: Option<Key>,
    /// `None` for none: what lies behind the graph shows through.
    pub(crate) background: Option<Rgb>,
    pub(crate) foreground: Rgb,
    pub(crate) style: Style,
    pub(crate) smooth: Smooth,
}

/// Red, green and blue.
pub(crate) type Rgb = (u8, u8, u8);

/// An axis of values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisLook {
    pub(crate) label: String,
    /// The ends that were given.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    pub(crate) log: bool,
    pub(crate) format: NumberFormat,
}

/// Where the names of the lines stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) outside: bool,
    pub(crate) boxed: bool,
    /// Names beside each other instead of below each other.
    pub(crate) horizontal: bool,
    pub(crate) across: Across,
    pub(crate) down: Down,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Across {
    Left,
    Center,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Down {
    Top,
    Center,
    Bottom,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Joined, and marked where there is room for marks.
    LinesAndPoints,
    Points,
    Circles,
    Dots,
}

/// What is made of the points before they are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Smooth {
    /// Nothing.
    Straight,
    /// A curve through them that swings over none of them.
    Curve,
    /// The sum of each point and all before it.
    Cumulative,
}

impl Default for Look {
    /// *Source*: OpenTSDB 2.4 `Plot`.
    fn default() -> Self {
        let axis = AxisLook { label: String::new(), low: None, high: None, log: false, format: NumberFormat::short() };
        Self {
            width: 1_024,
            height: 768,
            title: String::new(),
            left: axis.clone(),
            right: axis,
            time: None,
            key: Some(Key { outside: false, boxed: true, horizontal: false, across: Across::Right, down: Down::Top }),
            background: Some((255, 255, 255)),
            foreground: (0, 0, 0),
            style: Style::LinesAndPoints,
            smooth: Smooth::Straight,
        }
    }
}
