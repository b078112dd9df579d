"""Hostile tables of tensors in GGUF files; more rules of gguf.py."""
import struct

from .case import ACCEPT, BOUNDED, REFUSE
from .gguf import ARRAY, BOOL, F32, I32, I64, STRING, TYPES, U16, U32, U64, File, Tensor, any_file, built, last, rule


@rule("dimensions-too-many", REFUSE, "n_dimensions is at most 4")
def _(random):
    file, tensor = last(random)
    tensor.dims = tensor.dims[:1] + [1] * random.between(4, 7)
    return built(file, False)


@rule("dimensions-count", REFUSE, "n_dimensions is at most 4")
def _(random):
    file, tensor = last(random)
    head = file.head()
    info = tensor.info()
    at = len(head) - len(info) + 8 + len(tensor.name)
    return head[:at] + struct.pack("<I", random.pick([5, 16, 1000, 2**31, 2**32 - 1])) + head[at + 4:] + file.build()[len(head):]


@rule("dimensions-none", BOUNDED, "n_dimensions of 0 is not mentioned")
def _(random):
    file, tensor = last(random)
    tensor.dims = []
    return built(file, False)


@rule("dimension-zero", BOUNDED, "a dimension of 0 is not mentioned")
def _(random):
    file, tensor = last(random)
    tensor.dims[random.below(len(tensor.dims))] = 0
    return built(file, False)


@rule("dimension-huge", REFUSE, "each tensor's data must be stored within tensor_data")
def _(random):
    file, tensor = last(random)
    block = TYPES[tensor.kind][0]
    tensor.dims[-1] = random.pick([2**31, 2**32, 2**40, 2**56, 2**63, 2**64 - 256]) // (block if len(tensor.dims) == 1 else 1) * (
        block if len(tensor.dims) == 1 else 1)
    return built(file, False)


@rule("dimensions-wrap", REFUSE, "each tensor's data must be stored within tensor_data: a product that wraps around is not small")
def _(random):
    file, tensor = last(random)
    tensor.kind = random.pick([0, 1, 8, 12, 30])
    tensor.dims = random.pick([[2**32, 2**32], [2**32, 2**32, 2], [2**62, 4], [2**63, 2], [2**63, 2, 2], [2**16] * 4, [2**61, 8],
                               [2**31, 2**31, 4, 1], [2**33, 2**31, 256], [256, 2**56, 256], [2**61 + 256, 8]])
    return built(file, False)


@rule("dimension-one-more", REFUSE, "each tensor's data must be stored within tensor_data")
def _(random):
    file, tensor = last(random)
    tensor.dims.append(1)
    tensor.dims = tensor.dims[:4]
    # At least the alignment more than there is, so that padding does not hold it.
    tensor.dims[-1] *= random.pick([33, 64, 1000])
    return built(file, False)


@rule("type-removed", REFUSE, "support of types 4, 5, 31 to 33 and 37 has been removed")
def _(random):
    file, tensor = last(random)
    tensor.kind = random.pick([4, 5, 31, 32, 33, 37])
    return built(file, False)


@rule("type-reused", REFUSE, "support of types 36 and 38 has been removed")
def _(random):
    tensor = Tensor("a", [128, 4], 0)
    tensor.kind = random.pick([36, 38])
    return built(File([], [tensor]), False)


@rule("type-unknown", REFUSE, "type is one of ggml_type")
def _(random):
    file, tensor = last(random)
    tensor.kind = random.pick([64, 99, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1])
    return built(file, False)


@rule("row-of-blocks", REFUSE, "ggml: a row is a whole number of blocks")
def _(random):
    file, tensor = last(random)
    tensor.kind = random.pick([kind for kind, (block, _) in TYPES.items() if block > 1])
    block = TYPES[tensor.kind][0]
    tensor.dims = [random.pick([1, block - 1, block + 1, block // 2])]
    return built(file, False)


@rule("all-types", ACCEPT, "the types of ggml_type that have not been removed")
def _(random):
    return built(File([], [Tensor(f"t.{kind}", [block * random.between(1, 2)], kind) for kind, (block, _) in TYPES.items()]))


@rule("name-too-long", REFUSE, "a tensor's name is at most 64 bytes long")
def _(random):
    file, tensor = last(random)
    tensor.name = "a" * random.pick([65, 66, 100, 1000])
    return built(file, False)


@rule("name-63", ACCEPT, "a tensor's name is at most 64 bytes long")
def _(random):
    file, tensor = last(random)
    tensor.name = "a" * random.pick([1, 2, 62, 63])
    return built(file)


@rule("name-64", ACCEPT, "a tensor's name is at most 64 bytes long")
def _(random):
    file, tensor = last(random)
    tensor.name = "a" * 64
    return built(file)


@rule("name-not-utf8", REFUSE, "a tensor's name is a GGUF string, which is UTF-8")
def _(random):
    file, tensor = last(random)
    head, info = file.head(), tensor.info()
    at = len(head) - len(info) + 8
    return head[:at] + b"\xff" + head[at + 1:] + file.build()[len(head):]


@rule("name-past-end", REFUSE, "a string has `len` bytes")
def _(random):
    file, tensor = last(random)
    head, info = file.head(), tensor.info()
    at = len(head) - len(info)
    return head[:at] + struct.pack("<Q", random.pick([2**31, 2**32, 2**63, 2**64 - 1])) + head[at + 8:] + file.build()[len(head):]


@rule("name-twice", BOUNDED, "the document does not say what a second tensor with the same name means")
def _(random):
    return built(File([], [Tensor("same", [random.between(1, 9)], 0), Tensor("same", [random.between(1, 9)], 0)]), False)


@rule("offset-unaligned", REFUSE, "offset must be a multiple of ALIGNMENT")
def _(random):
    file, tensor = last(random)
    tensor.offset += random.between(1, 31)
    return built(file, False)


@rule("offset-past-end", REFUSE, "each tensor's data must be stored within tensor_data")
def _(random):
    file, tensor = last(random)
    tensor.offset = random.pick([-len(file.build()) % 32 + len(file.build()), 2**32, 2**40, 2**63 - 32, 2**63, 2**64 - 64, 2**64 - 32])
    return built(file, False)


@rule("tensors-share-bytes", BOUNDED, "the document does not say whether tensors may share bytes")
def _(random):
    file = any_file(random, tensors=2)
    file.tensors[-1].offset = 0
    return built(file, False)


@rule("tensors-apart", BOUNDED, "the document does not say whether there may be gaps")
def _(random):
    file = any_file(random, tensors=1)
    gap = 32 * random.between(1, 100)
    for tensor in file.tensors:
        tensor.offset += gap
    head = file.head()
    return head + b"\0" * (-len(head) % 32 + gap) + b"".join(t.data + b"\0" * (-len(t.data) % 32) for t in file.tensors)


@rule("order-of-offsets", BOUNDED, "the document does not say in which order tensors lie")
def _(random):
    file = any_file(random, tensors=2)
    file.tensors.reverse()
    head = file.head()
    body = b"".join(t.data + b"\0" * (-len(t.data) % 32) for t in reversed(file.tensors))
    return head + b"\0" * (-len(head) % 32) + body


@rule("trailing-bytes", BOUNDED, "the document does not say what bytes behind the last tensor mean")
def _(random):
    return any_file(random).build() + random.bytes(random.between(1, 100))


@rule("padding-not-zero", BOUNDED, "the file is padded with 0x00 bytes; a reader need not look")
def _(random):
    file = any_file(random, tensors=1)
    file.padding = b"\xff"
    return built(file, False)


@rule("last-padding-missing", BOUNDED, "the space between tensors should be padded; behind the last is none")
def _(random):
    file, tensor = last(random)
    data = file.build()
    return data[:len(data) - -len(tensor.data) % 32]


@rule("alignment-right", ACCEPT, "general.alignment must be a multiple of 8")
def _(random):
    return built(any_file(random, tensors=1, alignment=random.pick([8, 16, 64, 128, 4096, 65536])))


@rule("alignment-no-power", ACCEPT, "general.alignment must be a multiple of 8")
def _(random):
    return built(any_file(random, tensors=1, alignment=random.pick([24, 40, 48, 56, 1000])))


@rule("alignment-wrong", REFUSE, "general.alignment must be a multiple of 8, and align_offset() divides by it")
def _(random):
    file = any_file(random, tensors=1)
    file.entry("general.alignment", U32, random.pick([0, 1, 2, 4, 7, 12, 33, 2**32 - 1]))
    return built(file, False)


@rule("alignment-type", REFUSE, "general.alignment is a uint32")
def _(random):
    file = any_file(random, tensors=1)
    kind, data = random.pick([(STRING, "32"), (F32, 32.0), (BOOL, 1), (ARRAY, (U32, [32])), (I32, -32), (I64, -2**63)])
    file.entry("general.alignment", kind, data)
    return built(file, False)


@rule("alignment-other-integer", BOUNDED, "general.alignment is a uint32; readers should support both widths of counts")
def _(random):
    file = any_file(random, tensors=1)
    file.entry("general.alignment", random.pick([U64, I32, I64, U16]), 32)
    return built(file, False)


@rule("alignment-huge", REFUSE, "tensor_data begins at a multiple of ALIGNMENT, and the data must be stored within it")
def _(random):
    file = any_file(random, tensors=1)
    file.entry("general.alignment", U32, random.pick([2**24, 2**30, 2**31]))
    return built(file, False)


@rule("nothing-in-it", ACCEPT, "counts may be 0")
def _(random):
    return built(File() if random.below(2) else File([("general.architecture", STRING, "llama")]))


@rule("many", ACCEPT, "counts are 64 bits wide")
def _(random):
    return built(File([(f"many.n{i}", U32, i) for i in range(random.between(500, 2000))],
                      [Tensor(f"many.{i}", [1], 0) for i in range(random.between(100, 300))]))
