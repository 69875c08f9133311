"""Views in transformers: its own collator says the same, and a model keeps documents apart."""

import numpy as np
import pytest
import torch
import transformers
from transformers.masking_utils import create_causal_mask

import brimful as bf
from truth import IGNORE, listed

LENGTHS = (9, 5, 12, 7, 3, 20, 1, 11)
SEQ_LEN = 24


@pytest.fixture(scope="module")
def documents():
    generator = np.random.default_rng(1)
    return [generator.integers(1, 97, n) for n in LENGTHS]


def make_model(attention):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        attn_implementation=attention,
    )
    return transformers.LlamaForCausalLM(config).eval()


def batches_of(documents, **settings):
    return bf.DataLoader(bf.open(documents), batch_size=4, seq_len=SEQ_LEN, **settings)


def check_logits(documents, batch, logits):
    """Each document has the logits that it has alone; returns how many were looked at."""
    model = make_model("eager")
    flat = logits.reshape(-1, logits.shape[-1])
    assert not flat.isnan().any()
    seen = 0
    for number, begin, end in zip(
        batch.documents, batch.cu_seqlens_host, batch.cu_seqlens_host[1:], strict=False
    ):
        if number < 0:
            continue
        ids = torch.from_numpy(documents[number])[None]
        alone = model(input_ids=ids, use_cache=False).logits[0]
        torch.testing.assert_close(flat[begin : begin + len(alone)], alone, atol=1e-5, rtol=1e-4)
        assert end - begin >= len(alone)
        seen += 1
    return seen


def varlen_attention(module, query, key, value, attention_mask, scaling=None, **arguments):
    """Attention as flash-attention's varlen kernels do it: it goes by cu_seqlens alone."""
    assert attention_mask is None
    names = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k")
    cu_q, cu_k, max_q, max_k = (arguments[name] for name in names)
    assert cu_q.dtype == cu_k.dtype == torch.int32
    assert type(max_q) is type(max_k) is int
    assert int(cu_q.diff().max()) <= max_q
    groups = query.shape[1] // key.shape[1]
    # [batch, heads, tokens, dim] -> [heads, total, dim], as the kernels see it
    q, k, v = (x.transpose(0, 1).flatten(1, 2) for x in (query, key, value))
    k, v = (x.repeat_interleave(groups, 0) for x in (k, v))
    out = torch.full_like(q, float("nan"))  # the kernels leave what is behind the end unwritten
    for begin, end in zip(listed(cu_q), listed(cu_q)[1:], strict=False):
        out[:, begin:end] = torch.nn.functional.scaled_dot_product_attention(
            q[:, begin:end], k[:, begin:end], v[:, begin:end], is_causal=True, scale=scaling
        )
    return out.transpose(0, 1).unflatten(0, (query.shape[0], -1)), None


transformers.AttentionInterface.register("brimful_varlen", varlen_attention)


@pytest.mark.parametrize("layout", ["rows", "varlen"])
@pytest.mark.parametrize("attention", ["brimful_varlen", "sdpa", "eager"])
@torch.no_grad()
def test_c14_the_view_for_transformers_keeps_documents_apart(documents, attention, layout):
    model = make_model(attention)
    seen = sum(
        check_logits(documents, batch, model(**batch.transformers()).logits)
        for batch in batches_of(documents, layout=layout)
    )
    assert seen == len(documents)


MASKS = {
    "sdpa": lambda batch: batch.sdpa()["attn_mask"],
    "eager": lambda batch: batch.dense_mask(torch.float32),
    "flex_attention": lambda batch: batch.block_mask(),
}


def check_masked(documents, attention):
    """With a mask of the batch's own, a cache does no harm: the model looks for no documents."""
    model = make_model(attention)
    for layout in ("rows", "varlen"):
        seen = 0
        for batch in batches_of(documents, layout=layout):
            out = model(**batch, attention_mask=MASKS[attention](batch))
            seen += check_logits(documents, batch, out.logits)
        assert seen == len(documents)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@torch.no_grad()
def test_c14_dense_masks_keep_documents_apart(documents, attention):
    check_masked(documents, attention)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@torch.no_grad()
def test_c14_block_masks_keep_documents_apart_compiled(documents):
    check_masked(documents, "flex_attention")


@torch.no_grad()
def test_c14_the_collator_keeps_documents_apart(documents):
    batch = bf.flatten(documents, align=8, pad_to_multiple_of=64)
    model = make_model("brimful_varlen")
    assert check_logits(documents, batch, model(**batch.transformers()).logits) == len(documents)


@torch.no_grad()
def test_c14_a_change_in_one_document_leaves_the_others_alone():
    model = make_model("brimful_varlen")
    ids = [[5, 6, 7, 8], [9, 10]]
    before = model(**bf.flatten(ids).transformers()).logits[0, 4:]
    ids[0][1] = 60
    after = model(**bf.flatten(ids).transformers()).logits[0, 4:]
    assert before.equal(after)


@torch.no_grad()
def test_positions_that_continue_need_offsets_or_a_mask():
    """Pieces of one document behind each other look like one piece to a model that has neither."""
    (batch,) = batches_of([np.arange(1, 40)], layout="varlen", positions="continue")
    assert listed(batch.cu_seqlens) == [0, 24, 39]
    assert listed(batch["position_ids"]) == [list(range(39))]
    by_offsets = make_model("brimful_varlen")(**batch.transformers()).logits
    model = make_model("sdpa")
    by_mask = model(**batch, attention_mask=batch.dense_mask()).logits
    torch.testing.assert_close(by_offsets, by_mask, atol=1e-5, rtol=1e-4)
    by_neither = model(**batch, use_cache=False).logits
    assert (by_neither - by_mask).abs().max() > 1e-3


@torch.no_grad()
def test_without_the_arguments_the_model_refuses_to_guess(documents):
    """That the test's attention goes by the view: without it there is nothing to go by."""
    (batch, *_) = batches_of(documents)
    with pytest.raises(KeyError, match="cu_seq_lens_q"):
        make_model("brimful_varlen")(**batch, use_cache=False)


def test_c28_the_mask_of_the_model_is_that_of_the_documents():
    (batch,) = bf.DataLoader([np.arange(n) for n in (4, 2, 4)], seq_len=10, packing="best_fit")
    config = make_model("sdpa").config
    view = batch.transformers()
    mask = create_causal_mask(
        config=config,
        inputs_embeds=torch.empty(1, 10, 64),
        attention_mask=view.get("attention_mask"),
        cache=None,
        position_ids=view["position_ids"],
    )
    assert mask.sum() == 23


@torch.no_grad()
def test_c38_losses_of_micro_batches_add_up_to_that_of_all(documents):
    model = make_model("brimful_varlen")

    def loss(batch):
        items = batch.num_items_step_global
        return model(**batch.transformers(), num_items_in_batch=items).loss

    (step,) = bf.accumulate([bf.flatten(documents[:1]), bf.flatten(documents[1:])], 2)
    assert step[0].num_items != step[1].num_items
    torch.testing.assert_close(sum(map(loss, step)), loss(bf.flatten(documents)))


def random_documents(seed):
    generator = np.random.default_rng(seed)
    count = int(generator.integers(1, 17))
    lengths = generator.integers(0, 60, count)
    lengths[int(generator.integers(count))] += 1  # not all are empty
    documents = [{"input_ids": generator.integers(0, 50_000, n).tolist()} for n in lengths]
    if seed % 3 == 1:  # labels of prompts are left out
        for item in documents:
            keep = generator.random(len(item["input_ids"])) < 0.6
            item["labels"] = np.where(keep, item["input_ids"], IGNORE).tolist()
    if seed % 3 == 2:  # labels that are not the tokens
        for item in documents:
            item["labels"] = generator.integers(0, 50_000, len(item["input_ids"])).tolist()
    return documents


def test_the_batch_equals_that_of_the_collator_of_transformers_field_by_field():
    collate = transformers.DataCollatorWithFlattening(
        return_flash_attn_kwargs=True, return_seq_idx=True
    )
    for seed in range(100):
        documents = random_documents(seed)
        theirs = collate([dict(item) for item in documents])
        ours = bf.flatten(documents).transformers(seq_idx=True)
        assert ours.pop("use_cache") is False
        assert ours.keys() == theirs.keys()
        for name, value in theirs.items():
            if isinstance(value, torch.Tensor):
                assert ours[name].dtype == value.dtype, name
                assert ours[name].equal(value), name
            else:
                assert type(ours[name]) is type(value) is int
                assert ours[name] == value
