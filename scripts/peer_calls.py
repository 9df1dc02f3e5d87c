"""What the other libraries do in bench_peers.py: functions that set a call up and give it back."""

# Block of rows at once where a peer draws its own: it stays in the cache.
BLOCK = 4096


def softmax_rows(np, scores):
    """In place, as who knows NumPy writes it."""
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores


def causal_bias(np, n, m, causal):
    """-infinity above the diagonal: adding it is several times as fast as an index of booleans."""
    return np.triu(np.full((n, m), -np.inf, np.float32), 1) if causal else None


def numpy_attention(np, q, k, v, causal):
    scale = np.float32(q.shape[-1] ** -0.5)
    bias = causal_bias(np, q.shape[-2], k.shape[-2], causal)

    def call():
        scores = (q * scale) @ k.swapaxes(-1, -2)
        if causal:
            scores += bias
        return softmax_rows(np, scores) @ v

    return call


def numpy_weights(np, q, k, v, causal):
    """The weights too, in arrays that are kept from call to call."""
    scale = np.float32(q.shape[-1] ** -0.5)
    bias = causal_bias(np, q.shape[-2], k.shape[-2], causal)
    scaled, output = np.empty_like(q), np.empty((*q.shape[:-1], v.shape[-1]), np.float32)
    weights = np.empty((*q.shape[:-1], k.shape[-2]), np.float32)

    def call():
        np.multiply(q, scale, out=scaled)
        np.matmul(scaled, k.swapaxes(-1, -2), out=weights)
        if causal:
            np.add(weights, bias, out=weights)
        softmax_rows(np, weights)
        return np.matmul(weights, v, out=output), weights

    return call


def torch_weights(torch, q, k, v, causal):
    """The same: scaled_dot_product_attention gives no weights."""
    q, k, v = (torch.from_numpy(x) for x in (q, k, v))
    scale = q.shape[-1] ** -0.5
    hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1) if causal else None
    scores = torch.empty(*q.shape[:-1], k.shape[-2])
    weights, output = torch.empty_like(scores), torch.empty(*q.shape[:-1], v.shape[-1])

    def call():
        with torch.inference_mode():
            torch.matmul(q * scale, k.mT, out=scores)
            if causal:
                scores.masked_fill_(hidden, float("-inf"))
            torch.softmax(scores, -1, out=weights)
            return torch.matmul(weights, v, out=output), weights

    return call


def torch_attention(torch, q, k, v, causal):
    q, k, v = (torch.from_numpy(x)[None] for x in (q, k, v))

    def call():
        with torch.inference_mode():
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return call


def torch_backward(torch, q, k, v, grad_output, causal):
    q, k, v = (torch.from_numpy(x)[None].requires_grad_() for x in (q, k, v))
    grad_output = torch.from_numpy(grad_output)[None]
    output = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return lambda: torch.autograd.grad(output, (q, k, v), grad_output, retain_graph=True)


def ort_attention(modules, q, k, v, causal, threads):
    onnx, ort, np = modules["onnx"], modules["onnxruntime"], modules["numpy"]
    heads, n, d = q.shape
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    shape = [1, n, heads * d]
    names = ["query", "key", "value"]
    node = helper.make_node(
        "MultiHeadAttention", names, ["output"], domain="com.microsoft", num_heads=heads,
        unidirectional=int(causal),
    )  # fmt: skip
    graph = helper.make_graph(
        [node], "attention",
        [helper.make_tensor_value_info(name, float32, shape) for name in names],
        [helper.make_tensor_value_info("output", float32, shape)],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    packed = [np.ascontiguousarray(x.swapaxes(0, 1).reshape(shape)) for x in (q, k, v)]
    inputs = dict(zip(names, packed, strict=True))
    return lambda: session.run(None, inputs)[0]


def torch_layer(torch, n, d_model, heads):
    layer = torch.nn.MultiheadAttention(d_model, heads, batch_first=True).eval()
    x = torch.randn(1, n, d_model)

    def call():
        with torch.inference_mode():
            return layer(x, x, x, need_weights=False)

    return call


def numpy_layer(np, n, d_model, heads):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d_model), np.float32)
    w_qkv = rng.standard_normal((d_model, 3 * d_model), np.float32) / np.float32(d_model**0.5)
    w_o = rng.standard_normal((d_model, d_model), np.float32) / np.float32(d_model**0.5)
    scale = np.float32((d_model // heads) ** -0.5)

    def call():
        q, k, v = (x @ w_qkv).reshape(n, 3, heads, -1).transpose(1, 2, 0, 3)
        weights = softmax_rows(np, (q * scale) @ k.swapaxes(-1, -2))
        return (weights @ v).swapaxes(0, 1).reshape(n, d_model) @ w_o

    return call


def numpy_normals(np, count):
    rng, values = np.random.default_rng(0), np.empty(count, np.float32)
    return lambda: rng.standard_normal(count, np.float32, out=values)


def torch_normals(torch, count):
    values = torch.empty(count)
    return values.normal_


def numpy_variance(np, d_k, pairs):
    def call():
        rng, scores = np.random.default_rng(0), np.empty(pairs, np.float32)
        for first in range(0, pairs, BLOCK):
            rows = min(BLOCK, pairs - first)
            q = rng.standard_normal((rows, d_k), np.float32)
            k = rng.standard_normal((rows, d_k), np.float32)
            np.einsum("ij,ij->i", q, k, out=scores[first : first + rows])
        return scores.var(ddof=1, dtype=np.float64)

    return call


def torch_variance(torch, d_k, pairs):
    def call():
        torch.manual_seed(0)
        scores = torch.empty(pairs)
        for first in range(0, pairs, BLOCK):
            rows = min(BLOCK, pairs - first)
            q, k = torch.randn(rows, d_k), torch.randn(rows, d_k)
            scores[first : first + rows] = (q * k).sum(1)
        return scores.double().var()

    return call


def numpy_saturation(np, d_k, keys, rows, fresh):
    """Means of four of the metrics that attnlab measures: max p, sum p^2, entropy, ||J||_F^2."""
    scale, together = np.float32(d_k**-0.5), 1 if fresh else 64

    def call():
        rng, sums = np.random.default_rng(0), np.zeros(4)
        for _ in range(0, rows, together):
            q = rng.standard_normal((together, d_k), np.float32)
            k = rng.standard_normal((keys, d_k), np.float32)
            scores = (q * scale) @ k.T
            scores -= scores.max(axis=1, keepdims=True)
            p = np.exp(scores)
            total = p.sum(axis=1, keepdims=True)
            p /= total
            p2 = p * p
            s2, s3 = p2.sum(axis=1), np.einsum("ij,ij->i", p2, p)
            entropy = np.log(total[:, 0]) - np.einsum("ij,ij->i", p, scores)
            sums += p.max(axis=1).sum(), s2.sum(), entropy.sum(), (s2 - 2 * s3 + s2 * s2).sum()
        return sums / rows

    return call


PROGRAMS = {
    "PyTorch": """
import numpy, torch
torch.set_num_threads({threads})
q, k, v = (torch.from_numpy(numpy.load(f"{{name}}.npy"))[None, None] for name in "qkv")
with torch.inference_mode():
    output = torch.nn.functional.scaled_dot_product_attention(q, k, v)
numpy.save("torch.npy", output[0, 0].numpy())
""",
    "NumPy": """
import numpy
q, k, v = (numpy.load(f"{{name}}.npy") for name in "qkv")
scores = (q * numpy.float32(q.shape[1] ** -0.5)) @ k.T
scores -= scores.max(axis=1, keepdims=True)
numpy.exp(scores, out=scores)
scores /= scores.sum(axis=1, keepdims=True)
numpy.save("numpy.npy", scores @ v)
""",
}
