"""NumPy's own files."""

from tests.libraries.calls import Call, make_test

LIBRARY = "NumPy's files"
PREPARATION = ""
CALLS = [
    Call(
        "np.save('a.npy', a); np.load('a.npy')",
        "{void}",
        instead="td.save('a.npy', a); td.load('a.npy')",
        within=0,
    ),
    Call(
        "np.savez('a.npz', a=a); np.load('a.npz')['a']",
        "{void}",
        instead="td.savez('a.npz', a=a); td.load('a.npz')['a']",
        within=0,
    ),
    Call("a.tofile('a.bin'); np.fromfile('a.bin', a.dtype)", "{format}", within=0),
    Call("np.savetxt('a.txt', a); np.loadtxt('a.txt')", "float64", within=0),
    Call("np.savetxt('a.txt', a); np.loadtxt('a.txt', a.dtype)", "{format}", within=0),
    Call(
        "np.memmap('a.map', a.dtype, 'w+', shape=a.shape)[...]", "{format}", within=None
    ),
    Call("np.frombuffer(a.tobytes(), a.dtype)", "{format}", within=0),
    Call("a.tolist()", "list", within=0),
]

test_calls = make_test(CALLS, PREPARATION)
