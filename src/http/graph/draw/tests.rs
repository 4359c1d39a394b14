//! `O-Q-PNG`: what is drawn is looked at by pixels; how it looks was looked at by eyes.

use super::super::format::NumberFormat;
use super::super::look::{Smooth, Style};
use super::*;

fn graph(look: &Look, lines: Vec<Line>) -> Graph<'_> {
    Graph { look, lines, notes: Vec::new(), start_s: 1_700_000_000, end_s: 1_700_003_600, zone: Tz::UTC }
}

fn wave(name: &str, scale: f64, right: bool) -> Line {
    let points = (0..=30_u32).map(|step| {
        let at = f64::from(step);
        (1_700_000_000.0 + at * 120.0, scale * (at / 2.0).sin().mul_add(10.0, 20.0 + f64::from(step % 7)))
    });
    Line { name: name.to_owned(), points: points.collect(), right }
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
    let mut graph =
        graph(&look, vec![wave("sys.cpu.user{host=web01}", 1.0, false), wave("sys.cpu.sys{host=web01}", 2.0, false)]);
    graph.notes = vec![(1_700_001_000, "deployed 1.2.3".to_owned()), (1_700_001_060, "rolled back".to_owned())];
    let png = graph.png().unwrap();
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
    let draw = |look: &Look| graph(look, vec![wave("a", 1.0, false), wave("b", 300.0, true)]).png().unwrap();
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
    for lines in [
        Vec::new(),
        vec![Line { name: String::new(), points: Vec::new(), right: false }],
        vec![Line {
            name: "\u{7}\n日本語".repeat(40),
            points: vec![(1_700_000_000.0, f64::MAX), (1_700_000_001.0, f64::MIN)],
            right: true,
        }],
        vec![Line {
            name: "x".to_owned(),
            points: vec![(1_700_000_000.0, 1e-300), (1_700_003_600.0, f64::NAN)],
            right: false,
        }],
        vec![wave("a", 0.0, false); 300],
    ] {
        for log in [false, true] {
            let mut look = small.clone();
            look.left.log = log;
            look.right.log = log;
            look.smooth = Smooth::Curve;
            look.title = "a title that is far too long for a picture of this size".to_owned();
            let (width, _, _) = decode(&graph(&look, lines.clone()).png().unwrap());
            assert_eq!(width, 100);
        }
    }
    let look = Look { width: 800, height: 300, ..Look::default() };
    show("no-data", &graph(&look, Vec::new()).png().unwrap());
    let many: Vec<Line> =
        (0..40_u32).map(|place| wave(&format!("metric.number{{host=web{place}}}"), f64::from(place), false)).collect();
    show("many", &graph(&look, many).png().unwrap());
    let dense = (0..200_000_u32).map(|step| (1_700_000_000.0 + f64::from(step) / 60.0, f64::from(step % 1_013)));
    let dense = Line { name: "dense".to_owned(), points: dense.collect(), right: false };
    let mut graph = graph(&look, vec![dense]);
    graph.end_s = graph.start_s + 40 * 86_400;
    show("dense", &graph.png().unwrap());
}
