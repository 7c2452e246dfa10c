"""An image prepared for a model: checked, scaled down and re-encoded if it is too large."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.file_type import HEAD_BYTES, ImageType, image_type, size_text

if TYPE_CHECKING:
    from PIL.Image import Image  # Pillow takes 50 ms to import; most sessions never read an image

MAX_SIDE_PX = 1568
"""Models see no more than this; larger images only cost tokens."""
MAX_BYTES = 500_000
MAX_PIXELS = 50_000_000
MAX_FILE_BYTES = 100_000_000
_JPEG_QUALITIES = (85, 70, 50, 30)
# Naming the decoders keeps Pillow from trying others (EPS starts a program) on bytes that only look like an image.
_DECODERS: dict[ImageType, tuple[str, ...]] = {
    "image/png": ("PNG",),
    "image/jpeg": ("JPEG", "MPO"),
    "image/gif": ("GIF",),
    "image/webp": ("WEBP",),
    "image/bmp": ("BMP",),
}


@dataclass(frozen=True)
class FittedImage:
    """`width` and `height` are of `data`; the original's follow."""

    data: bytes
    mime_type: str
    width: int
    height: int
    original_width: int
    original_height: int
    original_type: ImageType

    @property
    def is_changed(self) -> bool:
        return self.mime_type != self.original_type or (self.width, self.height) != (
            self.original_width,
            self.original_height,
        )


def fit_image(file: BinaryIO, size: int) -> FittedImage:
    """Read an image of `size` bytes. Small ones pass unchanged, but not undecoded: hosts choke on broken ones.

    Raises `ToolError`: TOO_LARGE over 50 megapixels or 100 MB, BINARY if it is no image or broken.
    """
    sniffed = image_type(file.read(HEAD_BYTES))
    if sniffed is None:
        raise _broken("it has no image's first bytes")
    if size > MAX_FILE_BYTES:
        raise ToolError(
            ErrorCode.TOO_LARGE,
            f"the image has {size_text(size)}; at most {MAX_FILE_BYTES // 1_000_000} MB are decoded",
            "Scale it down with a program first, then read the copy.",
        )
    from PIL import Image, UnidentifiedImageError

    file.seek(0)
    try:
        with Image.open(file, formats=_DECODERS[sniffed]) as image:
            width, height = image.size
            _check_pixels(width, height)
            if size <= MAX_BYTES and max(width, height) <= MAX_SIDE_PX and sniffed != "image/bmp":
                image.load()
                file.seek(0)
                return FittedImage(file.read(), sniffed, width, height, width, height, sniffed)
            data, mime_type, fitted_width, fitted_height = _fitted(image, sniffed)
    except Image.DecompressionBombError:
        raise _too_many_pixels("far more than 50") from None
    except UnidentifiedImageError:
        raise _broken("its header cannot be read") from None
    except (OSError, SyntaxError, ValueError, EOFError, ArithmeticError, IndexError, KeyError, TypeError) as problem:
        # Pillow's decoders let all of these out on damaged data.
        raise _broken(str(problem) or type(problem).__name__) from None
    return FittedImage(data, mime_type, fitted_width, fitted_height, width, height, sniffed)


def _fitted(image: Image, sniffed: ImageType) -> tuple[bytes, str, int, int]:
    from PIL import ImageOps
    from PIL.Image import Resampling

    # A JPEG decoder can leave out detail nobody will see: a quarter of the memory, and far faster.
    image.draft("RGB", (MAX_SIDE_PX, MAX_SIDE_PX))
    upright = ImageOps.exif_transpose(image)
    has_alpha = upright.has_transparency_data
    picture = upright.convert("RGBA" if has_alpha else "RGB")
    picture.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX), Resampling.LANCZOS)
    if sniffed != "image/jpeg":
        # Screenshots and drawings stay sharp as PNG, and often small enough.
        data = _encoded(picture, "PNG")
        if len(data) <= MAX_BYTES:
            return data, "image/png", *picture.size
    opaque = _on_white(picture) if has_alpha else picture
    data = b""
    for quality in _JPEG_QUALITIES:
        data = _encoded(opaque, "JPEG", quality)
        if len(data) <= MAX_BYTES:
            break
    return data, "image/jpeg", *opaque.size


def _encoded(picture: Image, format: str, quality: int | None = None) -> bytes:
    buffer = io.BytesIO()
    if quality is None:
        picture.save(buffer, format)
    else:
        picture.save(buffer, format, quality=quality)
    return buffer.getvalue()


def _on_white(picture: Image) -> Image:
    from PIL import Image as ImageModule

    background = ImageModule.new("RGBA", picture.size, "white")
    return ImageModule.alpha_composite(background, picture).convert("RGB")


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _too_many_pixels(f"{width} x {height}, {math.ceil(width * height / 1_000_000)}")


def _too_many_pixels(how_many: str) -> ToolError:
    return ToolError(
        ErrorCode.TOO_LARGE,
        f"the image has {how_many} megapixels; at most {MAX_PIXELS // 1_000_000} are decoded",
        "Scale it down with a program first, then read the copy.",
    )


def _broken(why: str) -> ToolError:
    return ToolError(
        ErrorCode.BINARY,
        f"the file begins like an image but cannot be decoded: {why}",
        "The file is damaged or incomplete; make it again.",
    )


def fit_image_bytes(data: bytes) -> FittedImage:
    """`fit_image` for an image in memory."""
    return fit_image(cast("BinaryIO", io.BytesIO(data)), len(data))
