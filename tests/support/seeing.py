"""The answering model with eyes: what it said it says still, and of a picture it tells the colour.

An Idefics3 in shape (of those that vLLM sees with, it asks for no torchvision): a tower of one
layer, a connector, and the model of answering.py, made wider. Nothing is trained. To the tower
the picture is one patch, and its mean of red, green and blue; the connector makes of that a
direction for each colour that there is a word for; a head more, in the first layer, looks at all
tokens alike, and so brings the direction to where the answer begins, and the output layer has the
word for it. Behind the word comes the end.

The stream is wider by dimensions in which only a picture and these words have anything. Of a text
they are zero, and nothing changes: the root mean square is less by what the stream is wider, and
the norms' weights with it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from patchq.smoke.probes.image import COLOURS
from tests.support.answering_exl3 import widened
from tests.support.shards import BFLOAT16, Array, read_folder, write_safetensors

SIDE, TOWER = 32, 64
"""Pixels of a picture as the tower gets it, and the tower's width."""
IMAGE = "<image>"
_SPECIAL = (IMAGE, "<fake_token_around_image>", "<global-img>", "<end_of_utterance>")
_LOUD, _LAST = 1024.0, 2.0**20
"""How loud a colour is where the answer begins, beside what the text has there; and how much louder
that its word has been said."""


def seeing(source: Path, folder: Path) -> Path:
    """`folder`, made: the model of `source`, seeing, as `vllm serve` takes it."""
    shutil.copytree(source, folder)
    config = _read(folder / "config.json")
    tokens = _add_tokens(folder / "tokenizer.json", (*_SPECIAL, *COLOURS))
    weights = {name: widened(array) for name, array in read_folder(source).items()}
    made = {**_language(weights, config, tokens), **_tower(config["hidden_size"], _wider(config))}
    write_safetensors(
        folder / "model.safetensors", {name: _narrowed(array) for name, array in made.items()}
    )
    _write(folder / "config.json", _config(config, tokens[IMAGE]))
    _write(folder / "processor_config.json", _PROCESSOR)
    return folder


_PROCESSOR: Mapping[str, Any] = {
    "processor_class": "Idefics3Processor",
    "image_seq_len": 1,
    "image_processor": {
        "image_processor_type": "Idefics3ImageProcessor",
        "do_image_splitting": False,
        "size": {"longest_edge": SIDE},
        "max_image_size": {"longest_edge": SIDE},
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    },
}


def _config(text: Mapping[str, Any], image: int) -> Mapping[str, Any]:
    heads, wider = text["num_attention_heads"], _wider(text)
    text = {
        **text,
        "hidden_size": wider,
        "rms_norm_eps": text["rms_norm_eps"] * text["hidden_size"] / wider,
        "num_attention_heads": heads + 1,
        "num_key_value_heads": heads + 1,
    }
    vision = {
        "hidden_size": TOWER,
        "intermediate_size": TOWER,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "image_size": SIDE,
        "patch_size": SIDE,
    }
    return {
        "architectures": ["Idefics3ForConditionalGeneration"],
        "model_type": "idefics3",
        "dtype": "bfloat16",
        "text_config": text,
        "vision_config": vision,
        "scale_factor": 1,
        "image_token_id": image,
        "pad_token_id": text["pad_token_id"],
    }


def _add_tokens(path: Path, words: tuple[str, ...]) -> Mapping[str, int]:
    """The tokenizer in `path` has these besides; their numbers. A word is one token by itself alone."""
    tokenizer = _read(path)
    first = 1 + max(each["id"] for each in tokenizer["added_tokens"])
    numbers = {word: first + place for place, word in enumerate(words)}
    tokenizer["added_tokens"] += [
        {
            "id": number,
            "content": word,
            "single_word": word in COLOURS,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": word in _SPECIAL,
        }
        for word, number in numbers.items()
    ]
    _write(path, tokenizer)
    return numbers


def _wider(config: Mapping[str, Any]) -> int:
    """Dimensions of the stream: by so much more that they fall into as many parts as there are heads,
    which transformers asks for."""
    width, heads = config["hidden_size"], config["num_attention_heads"]
    return int(width // heads * (heads + 1))


def _language(
    weights: Mapping[str, Array], config: Mapping[str, Any], tokens: Mapping[str, int]
) -> dict[str, Array]:
    """The answering model, which tells what it sees. What is new is zero, but for that."""
    width, head, wider = config["hidden_size"], config["head_dim"], _wider(config)
    made = {}
    for name, array in weights.items():
        stream, heads = (0, wider - width), (0, head if "self_attn" in name else 0)
        if name.endswith("norm.weight"):
            new = np.append(array * (width / wider) ** 0.5, np.ones(wider - width))
        elif name.endswith(("o_proj.weight", "down_proj.weight")):
            new = np.pad(array, (stream, heads))
        else:
            new = np.pad(array, (heads, stream))
        made[name.replace("model.", "model.text_model.", 1)] = new
    looks, at = "model.text_model.layers.0.self_attn", config["num_attention_heads"] * head
    embedding, output = made["model.text_model.embed_tokens.weight"], made["lm_head.weight"]
    said = width + len(COLOURS)
    output[config["eos_token_id"], said] = 1
    for place, colour in enumerate(COLOURS):
        made[f"{looks}.v_proj.weight"][at + place, width + place] = 1
        made[f"{looks}.o_proj.weight"][width + place, at + place] = _LOUD
        output[tokens[colour], width + place] = 1
        embedding[tokens[colour]] = 0
        embedding[tokens[colour], said] = _LAST
    return made


def _tower(width: int, wider: int) -> dict[str, Array]:
    """Eyes, and what they tell the language model beside what it knew."""
    prefix = "model.vision_model"
    patch = np.zeros((TOWER, 3, SIDE, SIDE))
    # Each mean and its opposite: what sums to zero no norm shifts.
    for channel in range(3):
        patch[channel, channel] = 1 / SIDE**2
        patch[3 + channel, channel] = -1 / SIDE**2
    made = {
        f"{prefix}.embeddings.patch_embedding.weight": patch,
        f"{prefix}.embeddings.patch_embedding.bias": np.zeros(TOWER),
        f"{prefix}.embeddings.position_embedding.weight": np.zeros((1, TOWER)),
    }
    layer = "encoder.layers.0"
    for norm in (f"{layer}.layer_norm1", f"{layer}.layer_norm2", "post_layernorm"):
        made |= {
            f"{prefix}.{norm}.weight": np.ones(TOWER),
            f"{prefix}.{norm}.bias": np.zeros(TOWER),
        }
    # Nothing comes of the one layer but what went in.
    parts = (*(f"self_attn.{each}_proj" for each in ("q", "k", "v", "out")), "mlp.fc1", "mlp.fc2")
    for part in parts:
        made[f"{prefix}.{layer}.{part}.weight"] = np.zeros((TOWER, TOWER))
        made[f"{prefix}.{layer}.{part}.bias"] = np.zeros(TOWER)
    tells = np.zeros((wider, TOWER))
    for place, colour in enumerate(COLOURS.values()):
        # More of its own than of the others.
        tells[width + place, :3] = [2 if value else -1 for value in colour]
    return {**made, "model.connector.modality_projection.proj.weight": tells}


def _narrowed(array: Array) -> Array:
    """bfloat16: the nearest, and of two the one whose last bit is zero."""
    bits = np.ascontiguousarray(array, "<f4").view("<u4")
    nearest: Array = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return nearest.astype("<u2").view(BFLOAT16)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
