"""The outcome of every public function of NumPy and CuPy for tf32dtype.cuda arrays.

A row is (name, calls, outcome). The calls are those of `surface_table`, in the letters
of `surface`, or of `CALLS`. The letter f is the function. Outcomes:

"routed"        dtype and bits of NumPy's function on the CPU
"error: WORDS"  an exception with these words
"safe"          CuPy's own code: the same bits, or an error for lack of a driver
"wider"         the same, or an array of one of NumPy's dtypes, which CuPy computed
                after a cast that its caller can see in the result's dtype
"none"          takes no array of these formats
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.ufuncs.numpy_surface_table import CHAINED, LIKE, MOVES, ROUNDED

NO_KERNEL = "error: has no GPU kernel for"
NOT_CUPYS = "error: Unsupported dtype"

#: Calls for functions that `surface_table` lacks, or whose calls there do not fit.
CALLS: dict[str, tuple[str, ...]] = {
    "astype": ("f(a, T)", "f(a, np.float32)", "f(a, int)"),
    "concat": ("f((a, b))", "f((m, m), axis=1)"),
    "matmul": ("f(m, m.T)", "f(q, q)"),
    "round": ("f(a, 1)", "f(a)"),
    "sum": tuple(
        call for call in ROUNDED["np."]["sum"] if "np.empty" not in call
    ),
    "linalg.tensorinv": ("f(q)",),
    "linspace": ("f(a, b, 5)",),
    "logspace": ("f(a, b, 5)",),
    "geomspace": ("f(a, b, 5)",),
    "interp": ("f(a, np.sort(a), b)",),
    "isin": ("f(a, b)", "f(nan, nan)", "f(a, b, invert=True)"),
    "einsum": ("f('ij,jk', m, m.T)", "f('i,i', a, b)"),
    "insert": ("f(a, 1, 2)",),
    "pad": (
        "f(a, 2)", "f(a, 2, mode='edge')", "f(a, 2, mode='reflect')",
        "f(a, 2, mode='wrap')", "f(a, 2, mode='symmetric')",
        "f(m, ((1, 0), (0, 2)), constant_values=2)",
        "f(m, 1, constant_values=((1, 2), (3, 4)))",
    ),
    "var": (
        "f(m, axis=0)", "f(a, ddof=1)", "f(m, keepdims=True)", "f(m, 0, None, None, 1)",
        "f(m, correction=1)",
    ),
    "average": ("f(a)", "f(m, axis=1)"),
    "unique": (
        "f(a, return_index=True, return_inverse=True, return_counts=True)", "f(nan)",
    ),
    "linalg.norm": (
        "f(a)", "f(m)", "f(m, axis=0)", "f(a, 1)", "f(a, np.inf)", "f(a, -np.inf)",
    ),
}  # fmt: skip

NUMPY = {
    "routed": """
        all allclose amax amin angle any append argmax argmin argpartition argsort
        argwhere around array2string array_equal array_equiv array_repr array_split
        array_str astype atleast_1d atleast_2d atleast_3d average block
        broadcast_arrays broadcast_to can_cast choose clip column_stack compress
        concat concatenate copy copyto count_nonzero cumprod cumsum cumulative_prod
        cumulative_sum delete diag diag_indices_from diagflat diagonal diff dot
        dsplit dstack ediff1d einsum empty_like expand_dims extract fill_diagonal
        fix flatnonzero flip fliplr flipud full_like hsplit hstack imag inner
        isclose iscomplex iscomplexobj isin isneginf isposinf isreal isrealobj kron
        lexsort matrix_transpose max may_share_memory mean meshgrid min
        min_scalar_type moveaxis nan_to_num nanargmax nanargmin nancumprod nancumsum
        nanmax nanmean nanmin nanprod nanstd nansum nanvar ndim nonzero ones_like outer
        pad partition permute_dims place prod ptp put put_along_axis putmask ravel real
        real_if_close repeat reshape resize result_type roll rollaxis rot90 round
        searchsorted select shape size sort split squeeze stack std sum swapaxes
        take take_along_axis tensordot tile trace transpose tril tril_indices_from
        triu triu_indices_from unique unstack var vdot vsplit vstack where
        zeros_like linalg.diagonal linalg.matmul linalg.matrix_transpose linalg.norm
        linalg.multi_dot linalg.outer linalg.tensordot linalg.trace
        linalg.vecdot fft.fftshift
        fft.ifftshift""",
    NO_KERNEL: """
        apply_along_axis apply_over_axes bincount common_type convolve corrcoef
        correlate cov cross digitize einsum_path geomspace gradient histogram
        histogram2d histogram_bin_edges histogramdd i0 insert interp intersect1d
        linspace logspace median nanmedian nanpercentile nanquantile
        percentile piecewise poly polyadd polyder polydiv polyfit polyint polymul
        polysub polyval quantile roots setdiff1d setxor1d shares_memory sinc
        sort_complex trapezoid trim_zeros union1d unique_all unique_counts
        unique_inverse unique_values unwrap vander linalg.cholesky linalg.cond
        linalg.cross linalg.det linalg.eig linalg.eigh linalg.eigvals
        linalg.eigvalsh linalg.inv linalg.lstsq linalg.matrix_norm
        linalg.matrix_power linalg.matrix_rank linalg.pinv
        linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals
        linalg.tensorinv linalg.tensorsolve linalg.vector_norm fft.fft fft.fft2
        fft.fftn fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.irfft
        fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn""",
    "none": """
        busday_count busday_offset datetime_as_string is_busday ix_ packbits
        ravel_multi_index save savetxt savez savez_compressed unpackbits
        unravel_index""",
}

CUPY = {
    "routed": """
        all amax amin any apply_over_axes argmax argmin argpartition argsort
        array2string array_repr array_split array_str astype atleast_1d atleast_2d
        atleast_3d average broadcast_arrays broadcast_to can_cast clip compress copy
        count_nonzero diagonal diff dot dsplit ediff1d expand_dims fill_diagonal
        flatnonzero flip fliplr flipud hsplit imag isclose iscomplexobj isrealobj
        kron matrix_transpose max may_share_memory mean meshgrid min min_scalar_type
        moveaxis nanargmax nanargmin nanmean nanprod nansum ndim nonzero outer
        partition permute_dims prod ptp put ravel real real_if_close repeat reshape
        result_type rollaxis rot90 shape shares_memory size sort split squeeze std
        sum swapaxes take trace transpose trapezoid var vsplit where
        linalg.matrix_transpose linalg.norm""",
    NO_KERNEL: "angle isin nanstd nanvar",
    NOT_CUPYS: """
        apply_along_axis cross diagflat empty_like full_like linspace logspace
        nan_to_num nancumprod nancumsum ones_like pad piecewise polyadd polysub
        resize roll roots select zeros_like linalg.cross fft.fftshift fft.ifftshift""",
    "error: has no attribute": "choose lexsort",
    "safe": """
        allclose append argwhere around array_equal array_equiv bincount
        column_stack concatenate copyto cumprod cumsum cumulative_prod
        cumulative_sum delete diag diag_indices_from digitize dstack einsum extract
        gradient histogram histogram2d histogramdd hstack inner interp intersect1d
        iscomplex isneginf isposinf isreal matmul median nanmax nanmedian nanmin
        percentile place poly polymul polyval put_along_axis putmask quantile round
        searchsorted setdiff1d setxor1d sort_complex stack take_along_axis tensordot
        tile tril tril_indices_from trim_zeros triu triu_indices_from union1d unique
        unique_all unique_counts unique_inverse unique_values unwrap vander vdot
        vstack linalg.cholesky linalg.cond linalg.det linalg.eig linalg.eigh
        linalg.eigvals linalg.eigvalsh linalg.inv linalg.lstsq linalg.matmul
        linalg.matrix_power linalg.matrix_rank linalg.pinv linalg.qr linalg.slogdet
        linalg.solve linalg.svd linalg.tensorinv linalg.tensorsolve""",
    "wider": """
        convolve corrcoef correlate cov polyfit fft.fft fft.fft2 fft.fftn fft.hfft
        fft.ifft fft.ifft2 fft.ifftn fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft
        fft.rfft2 fft.rfftn""",
    "none": """
        alltrue arange array asanyarray asarray asarray_chkfinite ascontiguousarray
        asfarray asfortranarray asnumpy bartlett base_repr binary_repr blackman
        broadcast_shapes byte_bounds clear_memo common_type concat cumproduct
        diag_indices disp empty eye find_common_type format_float_positional
        format_float_scientific fromDlpack from_dlpack frombuffer fromfile
        fromfunction fromiter fromstring full fuse genfromtxt get_array_module
        get_array_wrap get_default_memory_pool get_default_pinned_memory_pool
        get_printoptions hamming hanning identity in1d indices is_available isdtype
        isfortran isscalar issctype issubclass_ issubdtype issubsctype iterable ix_
        kaiser load loadtxt make_aligned_dtype mask_indices memoize mintypecode
        msort obj2sctype ones packbits printoptions product promote_types
        ravel_multi_index require round_ row_stack safe_eval save savetxt savez
        savez_compressed sctype2char set_printoptions set_string_function
        show_config sometrue trapz tri tril_indices triu_indices typename unpackbits
        unravel_index who zeros fft.fftfreq fft.rfftfreq""",
}

#: Calls of routed functions that are rejected, with words of the error.
REFUSED = {
    "np.": {
        "average": ("f(a, weights=b)", "weights="),
        "unique": ("f(m, axis=0)", "axis and equal_nan=False"),
        "pad": ("f(a, 2, mode='maximum')", "got 'maximum'"),
        "sum": ("f(m, axis=1, out=np.empty(3, T))", "out must be an array on the GPU"),
        "concatenate": ("f((a, [[1], [2, 3]]))", ""),
        "where": ("f(mask, a, np.ones(6))", "asarray"),
        "add": ("f(a, np.ones(6))", "asarray"),
        "copyto": ("f(np.ones(6), a)", "x.get() for a NumPy"),
        "linalg.norm": ("f(m, 'nuc')", "has no GPU kernel"),
    },
}


def _calls(name: str) -> tuple[str, ...]:
    if name in CALLS:
        return CALLS[name]
    where, dot, last = name.rpartition(".")
    for part in (MOVES, ROUNDED, CHAINED, LIKE):
        found = part.get(f"np.{where}{dot}", {}).get(last)
        if found is not None:
            calls = (found,) if isinstance(found, str) else found
            return tuple(x for x in calls if "text(" not in x and "through" not in x)
    raise KeyError(name)


def rows(table: dict[str, str]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Yield (name, calls, outcome) for each name of a table."""
    for outcome, names in table.items():
        for name in names.split():
            yield name, () if outcome == "none" else _calls(name), outcome
