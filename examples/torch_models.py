"""Three small PyTorch models that are trained in a minute or two.

    python examples/torch_models.py FOLDER [--quick]

- ``digits``: a convolutional network for scikit-learn's images of digits.
- ``decoder``: a language model of characters that generates text with a KV cache.
- ``encoder``: a transformer encoder for the same images, in patches.

The text of the decoder is the documentation that Python itself contains
(`pydoc_data.topics`). FOLDER gets a checkpoint of each model: digits.safetensors and so
on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

LENGTH = 128  # characters that a language model sees
WIDTH = 128


class Digits(nn.Module):
    """A convolutional network for images of 8 x 8 points."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 32, 3, padding=1)
        self.second = nn.Conv2d(32, 64, 3, padding=1)
        self.third = nn.Conv2d(64, 64, 3, padding=1)
        self.hidden = nn.Linear(64 * 4, 128)
        self.output = nn.Linear(128, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = functional.relu(self.first(images))
        x = functional.max_pool2d(functional.relu(self.second(x)), 2)
        x = functional.max_pool2d(functional.relu(self.third(x)), 2)
        return self.output(functional.relu(self.hidden(x.flatten(1))))


class Block(nn.Module):
    """A layer of a decoder: attention to earlier characters, then a small network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor, cache: list[Tensor] | None = None) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        if cache is not None:  # keys and values of the earlier characters
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = k, v
        x = x + self.proj(
            functional.scaled_dot_product_attention(
                q, k, v, is_causal=length == k.shape[2]
            )
            .transpose(1, 2)
            .reshape(batch, length, width)
        )
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    """A language model of characters."""

    def __init__(self, characters: int, width: int = WIDTH, layers: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.position = nn.Embedding(LENGTH, width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters, bias=False)

    def forward(self, text: Tensor, cache: list[list[Tensor]] | None = None) -> Tensor:
        start = cache[0][0].shape[2] if cache and cache[0] else 0
        places = torch.arange(start, start + text.shape[1])
        x = self.embedding(text) + self.position(places)
        for number, block in enumerate(self.blocks):
            x = block(x, None if cache is None else cache[number])
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, text: Tensor, count: int) -> Tensor:
        """Append the most probable characters, one by one, with a KV cache."""
        cache: list[list[Tensor]] = [[] for _ in self.blocks]
        logits = self(text, cache)
        for _ in range(count):
            following = logits[:, -1:].argmax(-1)
            text = torch.cat([text, following], 1)
            logits = self(following, cache)
        return text


class Encoder(nn.Module):
    """A transformer encoder for images of 8 x 8 points, in 16 patches of 2 x 2."""

    def __init__(self, width: int = WIDTH, layers: int = 4) -> None:
        super().__init__()
        self.patches = nn.Linear(4, width)
        self.position = nn.Parameter(0.1 * torch.randn(16, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(
            layer, layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.output = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        patches = functional.unfold(images, 2, stride=2).transpose(1, 2)
        x = self.layers(self.patches(patches) + self.position)
        return self.output(x.mean(1))


class Text(NamedTuple):
    """Text as numbers of characters: a part for training, and one for tests."""

    training: Tensor
    unseen: Tensor
    characters: str


def read_text() -> Text:
    """Return Python's own documentation, of which a tenth is not for training."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    text = "".join(c for c in text if c == "\n" or " " <= c <= "~")
    characters = "".join(sorted(set(text)))
    number = {c: i for i, c in enumerate(characters)}
    codes = torch.tensor([number[c] for c in text])
    cut = len(codes) * 9 // 10
    return Text(codes[:cut], codes[cut:], characters)


def read_digits() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return images and digits for training, and images and digits for tests."""
    import digits_numpy

    images, digits, test_images, test_digits = map(
        torch.from_numpy, digits_numpy.load()
    )
    square = (-1, 1, 8, 8)
    return images.view(square), digits, test_images.view(square), test_digits


def windows(text: Tensor, count: int, random: torch.Generator | None) -> Tensor:
    """Return pieces of a text: at random places, or evenly spread."""
    last = len(text) - LENGTH - 1
    if random is None:
        starts = torch.linspace(0, last, count).long()
    else:
        starts = torch.randint(last, (count,), generator=random)
    return text[starts[:, None] + torch.arange(LENGTH + 1)]


def next_characters(model: nn.Module, text: Tensor) -> Tensor:
    """Return the decoder's mean loss of the next character, in nats."""
    logits = model(text[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def train(
    model: nn.Module, loss_of: Callable[[], Tensor], steps: int, rate: float
) -> list[float]:
    """Train with AdamW, and return the losses; print the remaining time."""
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps)
    losses = []
    started = time.perf_counter()
    for step in range(1, steps + 1):
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if step % max(1, steps // 10) == 0:
            left = (time.perf_counter() - started) / step * (steps - step)
            print(f"  step {step} of {steps}: loss {losses[-1]:.3f}, {left:.0f} s left")
    return losses


def trained_images(
    kind: type[Digits | Encoder], steps: int, rate: float, seed: int = 0
) -> nn.Module:
    """Return a trained network for digits."""
    torch.manual_seed(seed)
    model = kind()
    images, digits, *_ = read_digits()
    random = torch.Generator().manual_seed(seed)

    def loss() -> Tensor:
        chosen = torch.randint(len(images), (64,), generator=random)
        return functional.cross_entropy(model(images[chosen]), digits[chosen])

    train(model, loss, steps, rate)
    return model.eval()


def trained_decoder(text: Text, steps: int, seed: int = 0) -> Decoder:
    """Return a trained language model."""
    torch.manual_seed(seed)
    model = Decoder(len(text.characters))
    random = torch.Generator().manual_seed(seed)
    train(
        model,
        lambda: next_characters(model, windows(text.training, 16, random)),
        steps,
        2e-3,
    )
    return model.eval()


def main() -> None:
    """Train the models, and write their checkpoints."""
    parser = argparse.ArgumentParser(description="Train three small models.")
    parser.add_argument("folder", type=Path, help="write the checkpoints here")
    parser.add_argument("--quick", action="store_true", help="train for 20 steps only")
    arguments = parser.parse_args()
    from tf32dtype import safetensors
    from tf32dtype.interop.torch import to_numpy

    arguments.folder.mkdir(parents=True, exist_ok=True)
    text = read_text()
    steps = 20 if arguments.quick else 600
    for name, make in (
        ("digits", lambda: trained_images(Digits, steps, 3e-3)),
        ("decoder", lambda: trained_decoder(text, steps)),
        ("encoder", lambda: trained_images(Encoder, steps, 1e-3)),
    ):
        print(name)
        model = make()
        weights = {k: to_numpy(v) for k, v in model.state_dict().items()}
        safetensors.save(arguments.folder / f"{name}.safetensors", weights)


if __name__ == "__main__":
    main()
