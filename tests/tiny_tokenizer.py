"""A tokenizer of bytes for trainers that want one, made here: nothing is downloaded."""

from __future__ import annotations

import tokenizers
import transformers


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Words of one letter: token ids of a chat are short."""
    words = ["<pad>", "<end>", "<unk>", "<user>", "<assistant>", *"abcdefghijklmnopqrstuvwxyz"]
    model = tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, "<unk>")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="<end>",
        unk_token="<unk>",
        chat_template=(
            "{% for m in messages %}{% if m.role == 'assistant' %}<assistant> "
            "{% generation %}{{ m.content }} <end>{% endgeneration %} "
            "{% else %}<user> {{ m.content }} <end> {% endif %}{% endfor %}"
        ),
    )
