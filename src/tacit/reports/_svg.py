"""Vega-Lite to SVG that is safe to put into a page.

What the renderer returns is parsed, and only drawing elements and attributes are kept:
a name that slipped through as markup would be dropped here.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from tacit.reports._words import clean

__all__ = ["drawing"]

_SVG = "{http://www.w3.org/2000/svg}"
_TAGS = {"svg", "g", "path", "rect", "line", "text", "tspan", "circle"}
_TAGS |= {"clipPath", "defs"}
_ATTRIBUTES = {
    *("d", "x", "y", "x1", "x2", "y1", "y2", "r", "cx", "cy", "rx", "ry"),
    *("width", "height", "viewBox", "transform", "fill", "fill-opacity", "stroke"),
    *("stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap"),
    *("stroke-linejoin", "stroke-miterlimit", "opacity", "text-anchor", "dx", "dy"),
    *("font-size", "font-weight", "font-style", "clip-path", "id", "display"),
}
# the browser's own font takes the place of the renderer's
_HREF = re.compile(r"^url\(#(\w+)\)$")


def drawing(spec: dict[str, Any], *, name: str, title: str, text: str) -> Markup:
    """Return a specification drawn as inline SVG, with a title and a description.

    Parameters
    ----------
    spec
        Vega-Lite, with its data inside.
    name
        Unique in the page: identifiers inside the drawing start with it.
    title, text
        What a reader who cannot see the drawing is told.
    """
    import vl_convert  # noqa: PLC0415 - forty megabytes that few programs need

    # an empty list of addresses: nothing is fetched, whatever a specification says
    svg = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    root = ElementTree.fromstring(svg)
    _keep_drawing(root, name)
    for size in ("width", "height"):
        root.attrib.pop(size, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-text")
    for place, (tag, words) in enumerate((("title", title), ("desc", text))):
        ending = "title" if tag == "title" else "text"
        element = ElementTree.Element(_SVG + tag, {"id": f"{name}-{ending}"})
        element.text = clean(words)
        root.insert(place, element)
    ElementTree.register_namespace("", _SVG.strip("{}"))
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _keep_drawing(element: ElementTree.Element, name: str) -> None:
    for child in list(element):
        tag = child.tag.removeprefix(_SVG) if isinstance(child.tag, str) else ""
        # the white sheet behind the marks would hide the page's own color
        sheet = tag == "rect" and child.get("fill") == "white"
        if tag not in _TAGS or sheet:
            element.remove(child)
        else:
            _keep_drawing(child, name)
    for attribute in list(element.attrib):
        value = element.attrib[attribute]
        reference = _HREF.match(value)
        if attribute not in _ATTRIBUTES or ("url(" in value and not reference):
            del element.attrib[attribute]
        elif attribute == "id":
            element.set("id", f"{name}-{value}")
        elif reference:
            element.set(attribute, f"url(#{name}-{reference.group(1)})")
        elif "." in value and attribute in ("d", "transform"):
            # a hundredth of a pixel is enough, and halves the file
            element.set(attribute, re.sub(r"\d+\.\d{3,}", _rounded, value))


def _rounded(match: re.Match[str]) -> str:
    return f"{float(match.group()):.2f}".rstrip("0").rstrip(".")
