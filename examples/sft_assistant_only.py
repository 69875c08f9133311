"""Fine-tuning on packed chats under a Trainer, with a loss on the assistant's words alone.

Chats become bytes with three marks, and a loss mask beside them says which tokens the assistant
wrote. Both go into shards; the loader packs whole chats into rows and keeps them apart. What the
user says is read and never trained on. Nothing is downloaded; it takes some 20 s on a CPU that
nobody else uses:

    python examples/sft_assistant_only.py
"""

from __future__ import annotations

import argparse
import random
import tempfile
from typing import Any

import torch
import transformers

import brimful as bf
from brimful.integrations.transformers import Trainer

USER, ASSISTANT, END = 256, 257, 258  # behind the 256 bytes
SEQ_LEN = 128

Chat = list[tuple[str, str]]  # what the user asks, what the assistant answers


def chats(count: int) -> list[Chat]:
    """Sums, one to three in a chat."""
    random.seed(1)
    digits = range(10)

    def turn() -> tuple[str, str]:
        a, b = random.choice(digits), random.choice(digits)
        return f"{a}+{b}?", f"It is {a + b}."

    return [[turn() for _ in range(random.randint(1, 3))] for _ in range(count)]


def encode(chat: Chat) -> tuple[list[int], list[int]]:
    """Tokens of a chat, and 1 for each that the assistant wrote, its end mark included: that is
    how it learns to stop.
    """
    tokens: list[int] = []
    mask: list[int] = []
    for question, answer in chat:
        asked = [USER, *question.encode(), END, ASSISTANT]
        answered = [*answer.encode(), END]
        tokens += asked + answered
        mask += [0] * len(asked) + [1] * len(answered)
    return tokens, mask


def tiny_model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=259,
        hidden_size=64,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=SEQ_LEN,
        pad_token_id=END,
        bos_token_id=None,
        eos_token_id=END,
    )
    return transformers.LlamaForCausalLM(config)


def answers(model: Any, questions: list[str]) -> list[str]:
    """What the model says to questions of one length, byte by byte up to the end mark."""
    tokens = torch.tensor([[USER, *question.encode(), END, ASSISTANT] for question in questions])
    begin = tokens.shape[1]
    with torch.no_grad():
        for _ in range(12):
            logits = model(tokens, use_cache=False).logits[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], dim=1)
    said = (row[: row.index(END)] if END in row else row for row in tokens[:, begin:].tolist())
    return [bytes(token for token in row if token < 256).decode(errors="replace") for row in said]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # in a model so small, threads wait for each other
    with tempfile.TemporaryDirectory() as folder:
        with bf.ShardWriter(f"{folder}/chats", dtype="uint16") as writer:
            for chat in chats(2000):
                tokens, mask = encode(chat)
                writer.add(tokens, loss_mask=mask)
        args = transformers.TrainingArguments(
            f"{folder}/run",
            max_steps=arguments.steps,
            per_device_train_batch_size=8,
            learning_rate=4e-3,
            logging_steps=50,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        trainer = Trainer(
            tiny_model(),
            args,
            train_dataset=f"{folder}/chats",
            loader={"seq_len": SEQ_LEN, "packing": "best_fit_decreasing", "overlong": "error"},
        )
        trainer.train()
        stats = trainer.train_loader.stats()
    print(
        f"{stats.effective_tokens:,} of {stats.tokens:,} tokens had a loss, "
        f"in rows {stats.utilization:.1%} full"
    )
    model = trainer.model.eval()
    sums = [(a, b) for a in range(10) for b in range(10)]
    said = answers(model, [f"{a}+{b}?" for a, b in sums])
    right = sum(words == f"It is {a + b}." for words, (a, b) in zip(said, sums, strict=True))
    print(f"9+8? {said[98]}")
    print(f"{right} of {len(sums)} sums are right")


if __name__ == "__main__":
    main()
