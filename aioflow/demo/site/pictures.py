"""Pictures of houses as SVG, always the same for one house: the front by day and at dusk, and the garden."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from aioflow.demo.site.houses import House
from aioflow.demo.site.markup import Markup, joined

WIDTH, HEIGHT = 480, 320
_GROUND = 252

_WALLS = ("#f3e9dc", "#e9dcc6", "#dfe6e3", "#f6f3ee", "#e4d0bd", "#cfdbe2", "#efe0d2", "#d9d3c7")
_ROOFS = ("#8a4b3c", "#5b5f66", "#74513f", "#9a5b44", "#4c565c", "#7b3f35")
_DOORS = ("#a5402d", "#2f5d62", "#3b4a6b", "#6a3f2b", "#c08a2e", "#34573f")
_LEAVES = ("#6d9c5a", "#5c8a4e", "#88ad63", "#4e7f55", "#7ba46b")


@dataclass(frozen=True)
class _Light:
    """The colours of a time of day."""

    sky: tuple[str, str]
    sun: str
    hills: tuple[str, str]
    lawn: str
    glass: str


_DAYS = (
    _Light(("#a9d8f5", "#f2faff"), "#fff3c4", ("#b9d3b0", "#9fc397"), "#8fbf72", "#bcd8e8"),
    _Light(("#8fc7ee", "#e6f5fd"), "#fffbe6", ("#a8c9b4", "#8db89a"), "#86b96c", "#c9e0ec"),
    _Light(("#c3d5df", "#f5f6f4"), "#ffffff", ("#b4c6b6", "#9ab39d"), "#8db37a", "#cad6dc"),
    _Light(("#f7c99a", "#fdf0dc"), "#fff0c9", ("#cbb98f", "#b0a878"), "#a6b06a", "#f6dfb6"),
)
_DUSK = _Light(("#33497f", "#ffb48c"), "#ffd9a8", ("#6b6f93", "#565f82"), "#6b8560", "#ffd98a")


def front(house: House, *, at_dusk: bool = False) -> Markup:
    """The house seen from the street."""
    dice = Random(house.number)
    day = dice.choice(_DAYS)
    light = _DUSK if at_dusk else day
    name = f"{'dusk' if at_dusk else 'day'}{house.number}"
    shapes = [*_backdrop(dice, light, name), *_tree(dice, dice.randint(28, 70), _GROUND + 2, 1.15)]
    if house.kind == "condominium":
        shapes += _block(dice, light)
    elif house.kind == "townhouse":
        shapes += _row(dice, light)
    else:
        shapes += _home(dice, light, storeys=2 if house.beds > 3 else dice.choice((1, 2)))
    shapes += [*_tree(dice, dice.randint(444, 462), _GROUND + 14, 1.3), *_bushes(dice)]
    if at_dusk:
        lit = [shape for shape in shapes if light.glass in shape]
        shapes += [_rect(0, 0, WIDTH, HEIGHT, "#141a38", opacity=0.42), *lit]
    return _drawing(shapes, f"{house.address}, {'at dusk' if at_dusk else 'seen from the street'}")


def garden(house: House) -> Markup:
    """Draw the garden at the back of the house."""
    dice = Random(f"garden {house.number}")
    light = dice.choice(_DAYS)
    shapes = _backdrop(dice, light, f"garden{house.number}")
    shapes += [_rect(x, 206, 14, 50, "#b99b78" if x % 32 else "#ad8f6c") for x in range(0, WIDTH, 16)]
    shapes += [*_tree(dice, dice.randint(60, 130), 256, 1.5), *_tree(dice, dice.randint(400, 450), 262, 1.2)]
    shapes += _bushes(dice)
    if "Spa" in house.features or dice.random() < 0.4:
        shapes += [_ellipse(300, 284, 118, 24, "#e9e3d6"), _ellipse(300, 283, 104, 18, "#6fc3d8")]
        shapes.append('<path d="M226 280q18-8 36 0t36 0 36 0 36 0" stroke="#fff" fill="none" opacity=".6"/>')
    else:
        shapes += [_rect(236, 262, 120, 8, "#8b6b4a"), _rect(250, 270, 6, 30, "#8b6b4a")]
        shapes += [_rect(336, 270, 6, 30, "#8b6b4a"), _rect(214, 280, 40, 6, "#9c7b58")]
    return _drawing(shapes, f"The garden of {house.address}")


def _drawing(shapes: list[str], title: str) -> Markup:
    return joined(
        [
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="xMidYMid slice"'
            ' role="img" xmlns="http://www.w3.org/2000/svg">',
            f"<title>{title.replace('&', '&amp;')}</title>",
            *shapes,
            "</svg>",
        ],
        "",
    )


# --- around the house ---------------------------------------------------------------------------


def _backdrop(dice: Random, light: _Light, name: str) -> list[str]:
    top, bottom = light.sky
    crest, fall = dice.randint(120, 170), dice.randint(150, 195)
    far, near = light.hills
    return [
        f'<linearGradient id="{name}" x2="0" y2="1"><stop stop-color="{top}"/>'
        f'<stop offset="1" stop-color="{bottom}"/></linearGradient>',
        _rect(0, 0, WIDTH, 260, f"url(#{name})"),
        _circle(dice.randint(60, 420), dice.randint(40, 90), dice.randint(16, 26), light.sun),
        *_cloud(dice.randint(20, 200), dice.randint(30, 80)),
        *_cloud(dice.randint(240, 400), dice.randint(24, 100)),
        f'<path d="M0 {fall}Q120 {crest} 260 {fall - 6}T480 {crest + 22}V260H0z" fill="{far}"/>',
        f'<path d="M0 {fall + 40}Q150 {fall - 8} 300 {fall + 30}T480 {fall + 14}V260H0z" fill="{near}"/>',
        _rect(0, _GROUND - 8, WIDTH, HEIGHT, light.lawn),
    ]


def _cloud(x: int, y: int) -> Iterator[str]:
    yield (
        f'<path d="M{x} {y}a14 14 0 0 1 26-8 18 18 0 0 1 34 2 11 11 0 0 1 12 12H{x - 4}'
        f'a8 8 0 0 1 4-6z" fill="#fff" opacity=".75"/>'
    )


def _tree(dice: Random, x: int, y: int, size: float) -> Iterator[str]:
    leaf, other = dice.sample(_LEAVES, 2)
    trunk = 34 * size
    yield _rect(x - 4, y - trunk, 8, trunk + 6, "#7a5b43")
    if dice.random() < 0.3:  # a cypress
        yield _ellipse(x, y - 66 * size, 15 * size, 58 * size, leaf)
        return
    yield _circle(x, y - 62 * size, 31 * size, leaf)
    yield _circle(x - 21 * size, y - 44 * size, 21 * size, other)
    yield _circle(x + 20 * size, y - 47 * size, 23 * size, leaf)


def _bushes(dice: Random) -> list[str]:
    spots = dice.sample(range(20, 470, 26), 6)
    return [
        _ellipse(x, _GROUND + 12, dice.randint(12, 22), dice.randint(8, 13), dice.choice(_LEAVES))
        for x in spots
        if not 190 < x < 270
    ]


# --- the house ----------------------------------------------------------------------------------


def _home(dice: Random, light: _Light, storeys: int) -> list[str]:
    """A house by itself, with a garage beside it."""
    wall, roof, door = dice.choice(_WALLS), dice.choice(_ROOFS), dice.choice(_DOORS)
    left, width, height = 112, dice.randint(164, 190), 56 * storeys + 6
    top = _GROUND - height
    shapes = [_rect(left + width - 46, top - 54, 18, 44, "#a7755f")]
    shapes += [*_garage(left + width - 4, 96, wall, roof), _rect(left, top, width, height, wall)]
    right = left + width
    if dice.random() < 0.5:
        shapes.append(_polygon((left - 14, top), (left + width / 2, top - 62), (right + 14, top), fill=roof))
        shapes.append(_circle(left + width / 2, top - 20, 9, light.glass))
    else:
        shapes.append(_hip(left - 14, right + 14, top, 48, roof))
    door_at = left + width / 2 - 13
    for storey in range(storeys):
        y = _GROUND - 46 - 56 * storey
        for x in (left + 22, left + width - 52):
            shapes.append(_window(x, y, light))
        if storey:
            shapes.append(_window(door_at - 2, y, light))
    shapes += _door(door_at, door)
    return shapes


def _hip(left: float, right: float, base: float, height: float, fill: str) -> str:
    """A roof that slopes on all sides."""
    ridge = base - height
    return _polygon((left, base), (left + height, ridge), (right - height, ridge), (right, base), fill=fill)


def _garage(left: float, width: int, wall: str, roof: str) -> list[str]:
    top, right = _GROUND - 58, left + width
    lines = "".join(f"M{left + 14} {top + 24 + 8 * n}h{width - 28}" for n in range(4))
    drive = ((left + 8, _GROUND), (right - 6, _GROUND), (right + 30, HEIGHT), (left - 6, HEIGHT))
    return [
        _polygon(*drive, fill="#d8d3c9"),
        _rect(left, top, width, 58, wall),
        _hip(left - 6, right + 10, top, 30, roof),
        _rect(left + 14, top + 16, width - 28, 42, "#fbfaf6"),
        f'<path d="{lines}" stroke="#cfc8b8"/>',
    ]


def _row(dice: Random, light: _Light) -> list[str]:
    """Three houses of one row."""
    shapes: list[str] = []
    walls, roof = dice.sample(_WALLS, 3), dice.choice(_ROOFS)
    for number, wall in enumerate(walls):
        left, top = 78 + 106 * number, _GROUND - 124 - 8 * (number % 2)
        shapes.append(_rect(left, top, 106, _GROUND - top, wall))
        shapes.append(_polygon((left - 3, top), (left + 53, top - 46), (left + 109, top), fill=roof))
        shapes.append(_circle(left + 53, top - 16, 7, light.glass))
        shapes += [_window(left + 16, top + 16, light), _window(left + 62, top + 16, light)]
        shapes += [_window(left + 16, top + 72, light), *_door(left + 64, dice.choice(_DOORS))]
    return shapes


def _block(dice: Random, light: _Light) -> list[str]:
    """Four floors with balconies."""
    wall, trim = dice.choice(_WALLS), dice.choice(_ROOFS)
    shapes = [_rect(96, 66, 292, 186, wall), _rect(88, 56, 308, 12, trim)]
    for floor in range(4):
        y = 84 + 42 * floor
        for column in range(5):
            x = 112 + 54 * column
            if floor == 3 and column == 2:
                shapes += _door(x + 2, trim)
                continue
            shapes.append(_window(x, y, light))
            if column % 2 == 0 and floor < 3:
                bars = f"M{x - 5} {y + 22}h40v14h-40zm8 0v14m8-14v14m8-14v14m8-14v14"
                shapes.append(f'<path d="{bars}" stroke="{trim}" fill="none"/>')
    return shapes


def _window(x: float, y: float, light: _Light) -> str:
    frame = f"M{x:g} {y:g}h30v30h-30zm15 0v30m-15-15h30"
    return f'<path d="{frame}" fill="{light.glass}" stroke="#fff" stroke-width="2.5"/>'


def _door(x: float, colour: str) -> list[str]:
    return [
        _rect(x, _GROUND - 46, 26, 46, colour),
        _circle(x + 21, _GROUND - 23, 1.8, "#f0d58a"),
        _rect(x - 5, _GROUND, 36, 5, "#cfc7b8"),
        _polygon((x + 2, _GROUND + 5), (x + 24, _GROUND + 5), (x + 44, 320), (x - 18, 320), fill="#e2dccf"),
    ]


def _rect(x: float, y: float, width: float, height: float, fill: str, opacity: float = 1) -> str:
    faint = "" if opacity == 1 else f' opacity="{opacity:g}"'
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{faint}/>'


def _circle(x: float, y: float, radius: float, fill: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:.0f}" r="{radius:.4g}" fill="{fill}"/>'


def _ellipse(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<ellipse cx="{x:g}" cy="{y:.0f}" rx="{width:.0f}" ry="{height:.0f}" fill="{fill}"/>'


def _polygon(*points: tuple[float, float], fill: str) -> str:
    return f'<path d="M{"L".join(f"{x:g} {y:g}" for x, y in points)}z" fill="{fill}"/>'
