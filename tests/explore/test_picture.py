"""A picture by tiles: whatever was sent, in whatever order it is drawn, the browser ends with the last frame."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from labkit.explore.picture import TILE, Picture, changed


class Browser:
    """What picture.js does: draws the whole picture that ``png`` is, and the tiles that belong to it."""

    def __init__(self, picture, monkeypatch):
        self.picture, self.canvas, self.drawn, self.tiles = picture, None, 0, None
        self.sent = []
        monkeypatch.setattr(picture, "send", lambda content, buffers: self.sent.append((content, buffers[0])))

    def draw_whole(self):
        if self.drawn != self.picture.base:
            self.canvas = np.array(Image.open(io.BytesIO(self.picture.png)).convert("RGBA"))
            self.drawn = self.picture.base
        self.put()

    def draw_tiles(self):
        for content, pixels in self.sent:
            self.tiles = content["base"], content["boxes"], pixels
            self.put()
        self.sent.clear()

    def put(self):
        if self.tiles is None or self.tiles[0] != self.drawn:
            return
        at, (_, boxes, pixels) = 0, self.tiles
        for left, top, width, height in boxes:
            size = 4 * width * height
            tile = np.frombuffer(pixels[at : at + size], np.uint8).reshape(height, width, 4)
            self.canvas[top : top + height, left : left + width] = tile
            at += size
        assert at == len(pixels)


def frame(height=70, width=100, **dots):
    pixels = np.full((height, width, 4), 255, np.uint8)
    for name, colour in dots.items():
        y, x = map(int, name[1:].split("_"))
        pixels[y, x, :3] = colour
    return pixels


@pytest.fixture
def pair(monkeypatch):
    picture = Picture(100)
    return picture, Browser(picture, monkeypatch)


def test_the_first_frame_goes_whole_and_the_next_by_the_tiles_that_differ(pair):
    picture, browser = pair
    picture.show(frame())
    assert (picture.base, browser.sent) == (1, [])
    picture.show(frame(p0_0=9, p69_99=9))
    ((content, pixels),) = browser.sent
    assert content == {"base": 1, "boxes": [(0, 0, 32, 32), (96, 64, 4, 6)]}
    assert len(pixels) == 4 * (32 * 32 + 4 * 6)


def test_what_moved_away_from_a_tile_is_sent_too(pair):
    picture, browser = pair
    for shown in (frame(), frame(p5_5=1), frame(p5_50=2), frame()):
        picture.show(shown)
        browser.draw_whole()
        browser.draw_tiles()
        assert np.array_equal(browser.canvas, shown)


@pytest.mark.parametrize("second", [frame(64, 100), frame(70, 96), np.zeros((70, 100, 4), np.uint8) + 7])
def test_another_size_and_a_change_of_most_of_it_go_whole(pair, second):
    picture, browser = pair
    picture.show(frame())
    picture.show(second)
    assert (picture.base, browser.sent) == (2, [])


def test_at_rest_the_file_is_what_is_shown_and_is_made_once(pair):
    picture, _ = pair
    picture.show(frame())
    picture.show(frame(p1_1=3))
    picture._handle_custom_msg({}, [])  # the browser asks
    assert picture.base == 2
    assert np.array_equal(np.array(Image.open(io.BytesIO(picture.png)).convert("RGBA")), frame(p1_1=3))
    picture._handle_custom_msg({}, [])
    assert picture.base == 2


def test_a_picture_that_nobody_looks_at_keeps_its_file_only_and_goes_whole_again(pair):
    picture, browser = pair
    for shown in (frame(), frame(p1_1=3)):
        picture.show(shown)
    picture.let_go()
    assert np.array_equal(np.array(Image.open(io.BytesIO(picture.png)).convert("RGBA")), frame(p1_1=3))
    assert not any(isinstance(kept, np.ndarray) for kept in vars(picture).values())
    browser.sent.clear()
    picture.show(frame(p1_1=4))
    assert (picture.base, browser.sent) == (3, [])


@given(st.data())
def test_the_tiles_that_differ_are_all_and_no_others(data):
    height, width = data.draw(st.integers(1, 80)), data.draw(st.integers(1, 80))
    before = np.zeros((height, width, 4), np.uint8)
    after = before.copy()
    spots = data.draw(st.lists(st.tuples(st.integers(0, height - 1), st.integers(0, width - 1), st.integers(0, 3))))
    for y, x, channel in spots:
        after[y, x, channel] = 200
    corners = {(x // TILE * TILE, y // TILE * TILE) for y, x, _ in spots}
    expected = {(x, y, min(TILE, width - x), min(TILE, height - y)) for x, y in corners}
    found = changed(before, after)
    assert set(found) == expected
    assert len(found) == len(expected)


@given(st.data())
def test_however_late_whole_pictures_are_drawn_the_last_frame_shows(data):
    with pytest.MonkeyPatch.context() as patch:
        picture = Picture(100)
        browser = Browser(picture, patch)
        shown = frame()
        for _ in range(data.draw(st.integers(1, 12))):
            match data.draw(st.sampled_from(["dot", "dot", "all", "settle", "draw", "tiles"])):
                case "dot":
                    shown = shown.copy()
                    y, x = data.draw(st.sampled_from([(0, 0), (40, 50), (69, 99)]))  # few, so that dots go again
                    shown[y, x, :3] ^= 255
                    picture.show(shown)
                case "all":
                    shown = np.full_like(shown, 255)
                    shown[..., :3] -= data.draw(st.integers(0, 9)).to_bytes(1, "big")[0]
                    picture.show(shown)
                case "settle":
                    picture.settle()
                case "draw":
                    browser.draw_whole()
                case "tiles":
                    browser.draw_tiles()
        picture.show(shown)
        for draw in data.draw(st.permutations([browser.draw_tiles, browser.draw_whole])):
            draw()
        assert np.array_equal(browser.canvas, shown)
