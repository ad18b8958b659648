"""All operations of PyTorch that multiply matrices: replaced, taken apart or named."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from tf32dtype.interop import torch as tt  # noqa: E402
from tf32dtype.interop.torch.hook.kinds import Kind, known  # noqa: E402

pytestmark = pytest.mark.once

MODES = (torch.enable_grad, torch.no_grad, torch.inference_mode)
#: Names that operations which multiply matrices may have.
NAMES = re.compile(
    r"mm_?$|mm_|matmul|mv_?$|conv|attention|linear|rnn|lstm|gru|_dot_?$|^dot$|vdot"
    r"|cdist|dist$|_dist|einsum|bilinear|trilinear|chain|matrix_exp|matrix_power|pinv"
    r"|scaled|inner|kron|outer|addr|tensordot|transformer"
)
#: Operations with such names that PyTorch computes, with the reason.
LEFT = {
    "no sums": "addr addr_",
    "sums of one axis": "dist",
    "layouts": """
        _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo
        _convert_weight_to_int4pack _convert_weight_to_int4pack_for_cpu
        _cslt_sparse_mm_search _cudnn_rnn_flatten_weight mkldnn_reorder_conv2d_weight
        mkldnn_reorder_conv3d_weight""",
    "interpolation": """
        _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward upsample_bilinear2d
        upsample_bilinear2d_backward upsample_linear1d upsample_linear1d_backward
        upsample_trilinear3d upsample_trilinear3d_backward""",
    "functions of numbers": """
        special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1""",
    "cells without products": """
        _thnn_fused_gru_cell _thnn_fused_gru_cell_backward _thnn_fused_lstm_cell
        _thnn_fused_lstm_cell_backward_impl""",
    "other devices": """
        _conv_depthwise2d conv_depthwise3d _cudnn_attention_backward
        _cudnn_attention_forward _cudnn_rnn _cudnn_rnn_backward
        _efficient_attention_backward _efficient_attention_forward
        _flash_attention_backward _flash_attention_forward
        _flash_attention_forward_no_dropout_inplace _lstm_mps _mps_convolution
        _mps_convolution_transpose _scaled_dot_product_attention_math_for_mps
        _scaled_dot_product_cudnn_attention
        _scaled_dot_product_cudnn_attention_backward
        _scaled_dot_product_efficient_attention
        _scaled_dot_product_efficient_attention_backward
        _scaled_dot_product_flash_attention
        _scaled_dot_product_flash_attention_backward addmm baddbmm
        cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
        cudnn_convolution_transpose lstm_mps_backward miopen_convolution
        miopen_convolution_add_relu miopen_convolution_relu
        miopen_convolution_transpose miopen_depthwise_convolution miopen_rnn
        miopen_rnn_backward mps_convolution_backward
        mps_convolution_transpose_backward""",
}
NAMED = {name for names in LEFT.values() for name in names.split()}


def overloads():
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        base, _, overload = name.removeprefix("aten::").partition(".")
        if name.startswith("aten::") and NAMES.search(base):
            packet = getattr(torch.ops.aten, base)
            if (overload or "default") in packet.overloads():
                yield base, getattr(packet, overload or "default")


@pytest.mark.skipif(
    not torch.__version__.startswith("2.13."), reason="the list is of PyTorch 2.13"
)
def test_every_operation():
    found = {kind: set() for kind in Kind}
    for base, overload in overloads():
        found[known(overload).kind].add(base)
    assert len(found[Kind.REPLACE]) > 15
    assert found[Kind.LEAVE] - NAMED == set()
    unknown = NAMED - found[Kind.LEAVE]
    assert unknown == set()


def square(*shape):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*shape, 6, 6, generator=generator)


A, X = square(), square(3)
#: A call, and how many products are replaced.
REACHED = {
    "multi_dot": (lambda: torch.linalg.multi_dot([A, A, A]), 2),
    "matrix_power": (lambda: torch.linalg.matrix_power(A, 3), 2),
    "tensordot": (lambda: torch.tensordot(A, A, 1), 1),
    "inner": (lambda: torch.inner(A, A), 1),
    "einsum of three": (lambda: torch.einsum("ij,jk,kl->il", A, A, A), 2),
    "cov": (lambda: torch.cov(A), 1),
    "mm(out=)": (lambda: torch.mm(A, A, out=torch.empty(0)), 1),
    "matmul(out=)": (lambda: torch.matmul(A, A, out=torch.empty(0)), 1),
    "addmm_": (lambda: A.clone().addmm_(A, A), 1),
    "baddbmm_": (lambda: X.clone().baddbmm_(X, X), 1),
    "addbmm_": (lambda: A.clone().addbmm_(X, X), 1),
    "addmv_": (lambda: A[0].clone().addmv_(A, A[0]), 1),
    "vdot": (lambda: torch.vdot(A[0], A[1]), 1),
    "LSTM": (lambda: nn.LSTM(6, 4, 2, bidirectional=True)(X), 4 * (1 + 3)),
    "GRU": (lambda: nn.GRU(6, 4)(X), 1 + 3),
    "RNN": (lambda: nn.RNN(6, 4)(X), 1 + 3),
    "LSTMCell": (lambda: nn.LSTMCell(6, 4)(A), 2),
    "GRUCell": (lambda: nn.GRUCell(6, 4)(A), 2),
    "attention": (lambda: nn.MultiheadAttention(6, 2)(X, X, X), 4),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).eval()(X),
        6,
    ),
    "vmap": (lambda: torch.vmap(torch.mm)(X, X), 1),
    "jvp": (lambda: torch.func.jvp(lambda x: x @ A, (A,), (A,)), 3),
}
#: A call, and the operation that the scope names.
UNREACHED = {
    "Bilinear": (lambda: nn.Bilinear(6, 6, 2)(A, A), "aten._trilinear.default"),
    "cdist": (
        lambda: torch.cdist(A.repeat(9, 1), A),
        "aten._euclidean_dist.default",
    ),
    "matrix_exp": (
        lambda: torch.linalg.matrix_exp(A),
        "aten.linalg_matrix_exp.default",
    ),
    "pinv": (lambda: torch.linalg.pinv(A), "aten.linalg_pinv.atol_rtol_tensor"),
    "conv_tbc": (
        lambda: torch.conv_tbc(X, torch.ones(1, 6, 2), torch.ones(2)),
        "aten.conv_tbc.default",
    ),
    "float64": (lambda: A.double() @ A.double(), "aten.mm.default"),
    "integers": (lambda: A.int() @ A.int(), "aten.mm.default"),
    "complex": (lambda: torch.complex(A, A) @ torch.complex(A, A), "aten.mm.default"),
    "sparse": (lambda: A.to_sparse() @ A, "aten.mm.default"),
    "custom": (lambda: torch.ops.tf32dtype_tests.times(A, A), None),
}


@pytest.mark.parametrize("name", REACHED)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_reached(name, mode):
    call, count = REACHED[name]
    with mode(), tt.matmul_precision("bf16") as scope:
        call()
    assert scope.calls.total() == count
    assert not scope.unreached


@torch.library.custom_op("tf32dtype_tests::times", mutates_args=())
def times(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b


@pytest.mark.parametrize("name", UNREACHED)
@pytest.mark.parametrize("mode", MODES)
def test_unreached(name, mode):
    call, operation = UNREACHED[name]
    operation = operation or "tf32dtype_tests.times.default"
    scope = tt.matmul_precision("bf16")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = call()
    torch.manual_seed(1)
    with (
        mode(),
        pytest.warns(UserWarning, match=f"multiply matrices: {re.escape(operation)}"),
        scope,
    ):
        found = call()
    assert found.shape == plain.shape
    assert not scope.calls
    assert [key[0] for key in scope.unreached] == [operation]


def test_layers_that_are_not_rounded_are_not_named():
    model = nn.Sequential(nn.Bilinear(6, 6, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tt.matmul_precision("bf16", skip=["0"], model=model) as scope:
            model[0](A, A)
    assert not scope.unreached


def test_quantized_layers():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = nn.Sequential(nn.Linear(6, 6))
        try:
            model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear})
        except RuntimeError as error:
            pytest.skip(str(error))
    with pytest.warns(UserWarning, match="quantized"), tt.matmul_precision("bf16"):
        model(A)


def test_no_numbers():
    """Tensors without numbers are neither multiplied nor named."""
    with torch.device("meta"), tt.matmul_precision("bf16") as scope:
        assert nn.Linear(6, 4)(torch.ones(3, 6)).shape == (3, 4)
    assert not scope.calls
    assert not scope.unreached


def test_fake_tensors():
    from torch._subclasses import FakeTensorMode

    scope = tt.matmul_precision("bf16")
    with FakeTensorMode(), scope:
        assert nn.Linear(6, 4)(torch.ones(3, 6)).shape == (3, 4)
    with scope, FakeTensorMode():
        assert nn.Linear(6, 4)(torch.ones(3, 6)).shape == (3, 4)
    assert not scope.calls


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
def test_nested_tensors():
    parts = [X[0], X[1, :2]]
    layer = nn.Linear(6, 4)
    with tt.matmul_precision("bf16") as scope, torch.inference_mode():
        layer(torch.nested.nested_tensor(parts))
    assert scope.unreached == {("aten.linear.default", "of nested tensors"): 1}
    with tt.matmul_precision("bf16") as scope:
        layer(torch.nested.nested_tensor(parts, layout=torch.jagged))
    assert scope.calls == {"": 1}


class Wrapped(torch.Tensor):
    """A subclass that computes by operations of the tensor that it wraps."""

    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)

    def __init__(self, x):
        self.x = x

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [x.x if isinstance(x, Wrapped) else x for x in args]
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", MODES)
def test_subclasses(mode):
    with mode(), tt.matmul_precision("bf16") as scope:
        A @ Wrapped(A)
        functional.linear(A, Wrapped(A))
    assert scope.calls == {"": 2}


class Opaque(Wrapped):
    """A subclass that multiplies without operations of PyTorch."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return torch.from_numpy(args[0].x.numpy() @ args[1].numpy())


def test_subclasses_that_multiply_themselves_are_counted():
    with (
        pytest.warns(UserWarning, match="of a tensor subclass"),
        tt.matmul_precision("bf16") as scope,
    ):
        Opaque(A) @ A
    assert scope.unreached == {("aten.mm.default", "of a tensor subclass"): 1}
    with tt.matmul_precision("bf16", only=["other"]) as scope:
        Opaque(A) @ A
    assert not scope.unreached


# -- calls that PyTorch refuses ------------------------------------------------------


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


NARROW = ones(3, 5, dtype=torch.bfloat16)
#: Calls that PyTorch refuses, by the cause.
INVALID = {
    "stacks": lambda: torch.bmm(ones(1, 2, 3), ones(4, 3, 5)),
    "dtypes": lambda: torch.mm(ones(2, 3), NARROW),
    "axes": lambda: torch.mm(ones(2, 2, 3), ones(3, 5)),
    "k": lambda: torch.mv(ones(2, 3), ones(4)),
    "dot": lambda: torch.dot(ones(2), ones(3)),
    "addend": lambda: torch.addmm(ones(5, 4), ones(1, 3), ones(3, 4)),
    "addend of another dtype": lambda: torch.addmm(ones(5), NARROW.T, NARROW),
    "in place": lambda: ones(5, 4).addmm_(ones(1, 3), ones(3, 4)),
    "channels of groups": lambda: functional.conv2d(
        ones(1, 5, 4, 4), ones(4, 2, 3, 3), groups=2
    ),
    "channels": lambda: functional.conv2d(ones(1, 5, 4, 4), ones(4, 2, 3, 3)),
    "kernel": lambda: functional.conv2d(ones(1, 2, 2, 2), ones(4, 2, 3, 3)),
    "bias": lambda: functional.conv1d(ones(1, 2, 4), ones(4, 2, 3), ones(1)),
    "dtypes of a convolution": lambda: functional.conv1d(
        ones(1, 3, 4), NARROW[:, None].mT.mT[:, [0, 0, 0], :3]
    ),
    "channels of a transposed convolution": lambda: functional.conv_transpose1d(
        ones(1, 2, 4), ones(4, 2, 3)
    ),
    "block scales": lambda: torch._scaled_mm(
        ones(16, 32).to(torch.float8_e4m3fn),
        ones(16, 32).to(torch.float8_e4m3fn).T,
        ones(16, 2),
        ones(2, 16),
    ),
    "heads": lambda: functional.scaled_dot_product_attention(
        ones(2, 4, 4, 8), ones(2, 2, 5, 8), ones(2, 2, 5, 8)
    ),
    "sparse values": lambda: functional.scaled_dot_product_attention(
        ones(2, 4, 4, 8), ones(2, 4, 4, 8), ones(2, 4, 4, 8).to_sparse()
    ),
}


@pytest.mark.parametrize("name", INVALID)
def test_refused_calls(name):
    class Layer(nn.Module):
        def forward(self):
            return INVALID[name]()

    model = nn.ModuleDict({"of": Layer()})
    with pytest.raises((RuntimeError, ValueError)) as usual:
        INVALID[name]()
    for _ in range(2):  # a refused call is not remembered
        with (
            pytest.raises(type(usual.value)) as found,
            tt.matmul_precision("bf16", model=model),
        ):
            model["of"]()
        assert str(found.value) == f"layer 'of': {usual.value}"


def test_attention_must_have_as_many_values_as_keys():
    with (
        pytest.raises(ValueError, match="value must have a row for each row of key"),
        tt.matmul_precision("bf16"),
    ):
        functional.scaled_dot_product_attention(
            ones(2, 3, 4, 8), ones(2, 3, 5, 8), ones(2, 3, 6, 8)
        )


def test_other_modes_do_not_see_the_trial_of_a_call():
    seen = []

    class Seeing(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Seeing(), tt.matmul_precision("bf16"):
        torch.mm(ones(7, 13), ones(13, 11))
    assert seen
    assert torch.ops.aten.mm.default not in seen


def test_errors_have_no_advice_for_other_functions():
    with (
        pytest.raises(ValueError, match=r"got inf at x\[0, 0\]$"),
        tt.matmul_precision("nvfp4"),
    ):
        torch.full((2, 2), torch.inf) @ ones(2, 2)
