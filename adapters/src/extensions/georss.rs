//! The location of an entry: GeoRSS Simple and GML, and W3C Basic Geo. A view of markup that is
//! kept; no map.

use crate::vocabulary::Vocabulary;
use crate::{Element, Entry};

/// Limit of the points of one shape; a shape with more says nothing.
const POINTS_MAX: usize = 16_384;

/// A place or an area on Earth.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// Shape that the points form.
    pub shape: Shape,
    /// The points as longitude and latitude in degrees (WGS 84), in that order, as GeoJSON has
    /// them; where the source names another reference system, its coordinates as they are.
    pub points: Vec<[f64; 2]>,
}

/// Shape that the points of a location form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One point.
    Point,
    /// Two or more points of a line.
    Line,
    /// The points of a closed ring, the first repeated as the last.
    Polygon,
    /// South-west and north-east corner.
    Box,
}

impl Entry {
    /// The first location that the entry's foreign markup gives.
    pub fn location(&self) -> Option<Location> {
        self.foreign
            .iter()
            .find_map(shaped)
            .or_else(|| pair(&self.foreign))
    }
}

/// `georss:point` and its like, `georss:where` around GML, bare GML, or `geo:Point`.
fn shaped(element: &Element) -> Option<Location> {
    let name = element.name.to_ascii_lowercase();
    match (Vocabulary::of(&element.ns), name.as_str()) {
        (Vocabulary::GeoRss, "where") => element.elements().find_map(shaped),
        (Vocabulary::GeoRss, "point") => simple(element, Shape::Point),
        (Vocabulary::GeoRss, "line") => simple(element, Shape::Line),
        (Vocabulary::GeoRss, "polygon") => simple(element, Shape::Polygon),
        (Vocabulary::GeoRss, "box") => simple(element, Shape::Box),
        (Vocabulary::Gml, "point") => gml(element, Shape::Point, "pos"),
        (Vocabulary::Gml, "linestring") => gml(element, Shape::Line, "posList"),
        (Vocabulary::Gml, "polygon") => gml(element, Shape::Polygon, "posList"),
        (Vocabulary::Gml, "envelope") => {
            let corner = |name: &str| numbers(&find(element, name)?.text());
            let corners = [corner("lowerCorner")?, corner("upperCorner")?].concat();
            location(Shape::Box, corners, is_latitude_first(element))
        }
        (Vocabulary::Geo, "point") => pair(element.elements()),
        _ => None,
    }
}

fn simple(element: &Element, shape: Shape) -> Option<Location> {
    location(shape, numbers(&element.text())?, true)
}

fn gml(element: &Element, shape: Shape, positions: &str) -> Option<Location> {
    let positions = find(element, positions)?;
    let dimension = [positions, element]
        .into_iter()
        .find_map(|element| element.attribute("srsDimension"));
    let mut found = numbers(&positions.text())?;
    if dimension.is_some_and(|dimension| dimension.trim() == "3") {
        found = found
            .chunks_exact(3)
            .flat_map(|point| [point[0], point[1]])
            .collect();
    }
    location(
        shape,
        found,
        is_latitude_first(element) && is_latitude_first(positions),
    )
}

/// Geographic systems of the EPSG register (mostly 4001 to 4999) put the latitude first, projected
/// ones have no latitude.
fn is_latitude_first(element: &Element) -> bool {
    let Some(system) = element.attribute("srsName") else {
        return true;
    };
    let code = system
        .rsplit([':', '#', '/'])
        .next()
        .and_then(|code| code.trim().parse::<u32>().ok());
    !system.contains("EPSG") && !system.contains("epsg")
        || code.is_some_and(|code| (4001..5000).contains(&code))
}

/// The first element with this name below another.
fn find<'e>(element: &'e Element, name: &str) -> Option<&'e Element> {
    element.elements().find_map(|child| {
        if child.name == name {
            Some(child)
        } else {
            find(child, name)
        }
    })
}

/// Numbers between blanks or commas; `None` if anything else stands there.
fn numbers(text: &str) -> Option<Vec<f64>> {
    let words = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty());
    let numbers = words
        .take(2 * POINTS_MAX + 1)
        .map(|word| word.parse().ok().filter(|number: &f64| number.is_finite()));
    numbers
        .collect::<Option<Vec<_>>>()
        .filter(|numbers| numbers.len() <= 2 * POINTS_MAX)
}

fn location(shape: Shape, numbers: Vec<f64>, latitude_first: bool) -> Option<Location> {
    let turned = |point: &[f64]| {
        if latitude_first {
            [point[1], point[0]]
        } else {
            [point[0], point[1]]
        }
    };
    let points: Vec<_> = numbers.chunks_exact(2).map(turned).collect();
    let is_whole = numbers.len().is_multiple_of(2);
    let fits = match shape {
        Shape::Point => points.len() == 1,
        Shape::Box => points.len() == 2,
        Shape::Line => points.len() >= 2,
        Shape::Polygon => points.len() >= 4,
    };
    // A third number beside a point is its height.
    let has_height = shape == Shape::Point && numbers.len() == 3;
    (fits && (is_whole || has_height)).then_some(Location { shape, points })
}

/// `geo:lat` and `geo:long` (or `geo:lon`), which stand beside each other.
fn pair<'e>(elements: impl IntoIterator<Item = &'e Element>) -> Option<Location> {
    let elements: Vec<_> = elements
        .into_iter()
        .filter(|element| Vocabulary::of(&element.ns) == Vocabulary::Geo)
        .collect();
    let coordinate = |names: &[&str]| {
        let found = elements
            .iter()
            .find(|element| names.contains(&element.name.as_str()));
        numbers(&found?.text())
            .filter(|numbers| numbers.len() == 1)
            .map(|numbers| numbers[0])
    };
    let point = [coordinate(&["long", "lon"])?, coordinate(&["lat"])?];
    Some(Location {
        shape: Shape::Point,
        points: vec![point],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_needs_its_number_of_points() {
        let points = |shape, text: &str| Some(location(shape, numbers(text)?, true)?.points.len());
        assert_eq!(points(Shape::Point, "1 2"), Some(1));
        assert_eq!(points(Shape::Point, "1,2"), Some(1));
        assert_eq!(points(Shape::Point, "1 2 300"), Some(1));
        assert_eq!(points(Shape::Point, "1"), None);
        assert_eq!(points(Shape::Point, "1 north"), None);
        assert_eq!(points(Shape::Point, "1 NaN"), None);
        assert_eq!(points(Shape::Box, "1 2 3 4"), Some(2));
        assert_eq!(points(Shape::Box, "1 2 3 4 5 6"), None);
        assert_eq!(points(Shape::Line, "1 2 3 4 5"), None);
        assert_eq!(points(Shape::Polygon, "1 2 3 4 1 2"), None);
        assert_eq!(points(Shape::Polygon, "1 2 3 4 5 6 1 2"), Some(4));
        assert_eq!(points(Shape::Line, &"1 ".repeat(2 * POINTS_MAX + 2)), None);
    }
}
