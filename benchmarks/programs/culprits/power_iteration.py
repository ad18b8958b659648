"""The most important pages of a small web: PageRank by power iteration."""

import numpy as np

rng = np.random.default_rng(12)
pages = 600
popular = 1 / np.arange(1, pages + 1)
links = (rng.random((pages, pages)) < 8 * popular).astype(np.float32)
np.fill_diagonal(links, 0)
links[np.arange(pages), (np.arange(pages) + 1) % pages] = 1
out = links.sum(axis=1, keepdims=True)
transition = (links / out).T.copy()

damping = np.float32(0.85)
rank = np.full(pages, 1 / pages, np.float32)
for _ in range(60):
    spread = transition @ rank
    rank = damping * spread + (1 - damping) / pages
    rank /= rank.sum()

top = np.argsort(-rank)[:5]
again = transition @ rank
print("best", rank[top])
print("sum of the best", rank[top].sum())
print("flow", rank @ again / (rank @ rank))
