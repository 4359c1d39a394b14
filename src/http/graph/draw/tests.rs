//! `O-Q-PNG`: what is drawn is looked at by pixels; how it looks was looked at by eyes.

use basalt_query::{Number, Point};

use super::super::format::NumberFormat;
use super::super::look::{Smooth, Style};
use super::*;

const START_S: i64 = 1_700_000_000;

/// A series whose line is drawn.
#[derive(Clone)]
struct Drawn {
    name: String,
    points: Vec<Point>,
    right: bool,
}

impl Drawn {
    /// A series of milliseconds from the start on, and values.
    fn new(name: &str, right: bool, points: impl IntoIterator<Item = (i64, f64)>) -> Self {
        let point = |(ms, value)| Point { time_ms: START_S * 1_000 + ms, number: Number::Double(value) };
        Self { name: name.to_owned(), points: points.into_iter().map(point).collect(), right }
    }
}

fn graph<'a>(look: &'a Look, series: &'a [Drawn]) -> Graph<'a> {
    let line = |told: &'a Drawn| Line { name: told.name.clone(), points: &told.points, right: told.right };
    let lines = series.iter().map(line).collect();
    Graph { look, lines, notes: Vec::new(), start_s: START_S, end_s: START_S + 3_600, zone: Tz::UTC }
}

fn png(graph: &Graph<'_>) -> Vec<u8> {
    graph.png(&Cancel::new()).unwrap()
}

fn wave(name: &str, scale: f64, right: bool) -> Drawn {
    let point = |step: u32| {
        let at = f64::from(step);
        (i64::from(step) * 120_000, scale * (at / 2.0).sin().mul_add(10.0, 20.0 + f64::from(step % 7)))
    };
    Drawn::new(name, right, (0..=30).map(point))
}

/// Width, height and pixels of a PNG.
fn decode(png: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels)
}

fn count(pixels: &[u8], colour: Rgb) -> usize {
    pixels.chunks(3).filter(|pixel| *pixel == [colour.0, colour.1, colour.2]).count()
}

/// Writes the pictures of these tests to the folder that `GRAPHS` names, for somebody to look at.
fn show(name: &str, png: &[u8]) {
    if let Ok(folder) = std::env::var("GRAPHS") {
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), png).unwrap();
    }
}

#[test]
fn o_q_png_a_graph_has_its_size_and_its_lines() {
    let look = Look { width: 640, height: 400, title: "CPU of web01 (%)".to_owned(), ..Look::default() };
    let mut look = look;
    look.left.label = "percent".to_owned();
    let series = [wave("sys.cpu.user{host=web01}", 1.0, false), wave("sys.cpu.sys{host=web01}", 2.0, false)];
    let mut graph = graph(&look, &series);
    graph.notes = vec![(1_700_001_000, "deployed 1.2.3".to_owned()), (1_700_001_060, "rolled back".to_owned())];
    let png = png(&graph);
    show("two-lines", &png);
    let (width, height, pixels) = decode(&png);
    assert_eq!((width, height), (640, 400));
    for colour in COLOURS.iter().take(2) {
        assert!(count(&pixels, *colour) > 200, "{colour:?}");
    }
    assert!(count(&pixels, (255, 255, 255)) > 100_000);
}

#[test]
fn o_q_png_every_wish_changes_the_picture() {
    let plain = Look { width: 500, height: 300, ..Look::default() };
    let series = [wave("a", 1.0, false), wave("b", 300.0, true)];
    let draw = |look: &Look| png(&graph(look, &series));
    let mut pictures = vec![draw(&plain)];
    let mut wish = |name: &str, change: &dyn Fn(&mut Look)| {
        let mut look = plain.clone();
        change(&mut look);
        let png = draw(&look);
        show(name, &png);
        assert!(!pictures.contains(&png), "{name} changes nothing");
        pictures.push(png);
    };
    wish("title", &|look| look.title = "Title".to_owned());
    wish("labels", &|look| {
        look.left.label = "left".to_owned();
        look.right.label = "right".to_owned();
    });
    wish("range", &|look| (look.left.low, look.left.high) = (Some(15.0), Some(25.0)));
    wish("log", &|look| look.right.log = true);
    wish("format", &|look| look.left.format = NumberFormat::parse("%.1s%cB").unwrap());
    wish("time", &|look| look.time = TimeFormat::parse("%d.%m. %H:%M"));
    wish("nokey", &|look| look.key = None);
    let key = plain.key.unwrap();
    wish("key-out", &|look| look.key = Some(Key { outside: true, ..key }));
    wish("key-bottom", &|look| {
        look.key = Some(Key { boxed: false, horizontal: true, across: Across::Center, down: Down::Bottom, ..key });
    });
    wish("dark", &|look| (look.background, look.foreground) = (Some((20, 20, 30)), (220, 220, 220)));
    wish("transparent", &|look| look.background = None);
    wish("points", &|look| look.style = Style::Points);
    wish("circles", &|look| look.style = Style::Circles);
    wish("dots", &|look| look.style = Style::Dots);
    wish("curve", &|look| look.smooth = Smooth::Curve);
    wish("cumulative", &|look| look.smooth = Smooth::Cumulative);
}

#[test]
fn o_q_png_anything_can_be_drawn() {
    let small = Look { width: 100, height: 100, ..Look::default() };
    for series in [
        Vec::new(),
        vec![Drawn::new("", false, [])],
        vec![Drawn::new(&"\u{7}\n日本語".repeat(40), true, [(0, f64::MAX), (1_000, f64::MIN)])],
        vec![Drawn::new("x", false, [(0, 1e-300), (3_600_000, f64::NAN)])],
        vec![wave("a", 0.0, false); 300],
    ] {
        for log in [false, true] {
            let mut look = small.clone();
            look.left.log = log;
            look.right.log = log;
            look.smooth = Smooth::Curve;
            look.title = "a title that is far too long for a picture of this size".to_owned();
            let (width, _, _) = decode(&png(&graph(&look, &series)));
            assert_eq!(width, 100);
        }
    }
    let look = Look { width: 800, height: 300, ..Look::default() };
    show("no-data", &png(&graph(&look, &[])));
    let many: Vec<Drawn> =
        (0..40_u32).map(|place| wave(&format!("metric.number{{host=web{place}}}"), f64::from(place), false)).collect();
    show("many", &png(&graph(&look, &many)));
    let dense = (0..200_000_u32).map(|step| (i64::from(step) * 1_000 / 60, f64::from(step % 1_013)));
    let dense = [Drawn::new("dense", false, dense)];
    let mut graph = graph(&look, &dense);
    graph.end_s = graph.start_s + 40 * 86_400;
    show("dense", &png(&graph));
}

#[test]
fn o_q_png_nothing_is_drawn_for_nobody() {
    let look = Look { width: 100, height: 100, ..Look::default() };
    let cancel = Cancel::new();
    cancel.cancel();
    let series = [wave("a", 1.0, false)];
    assert!(matches!(graph(&look, &series).png(&cancel), Err(DrawError::Cancelled)));
}
