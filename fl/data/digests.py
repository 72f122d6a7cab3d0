"""SHA-256 of the official (uncompressed) files, and of the arrays of the data sets that flmarket makes itself.

MNIST's and Fashion-MNIST's were computed from archives whose MD5 is the one in torchvision 0.28. For the other data
sets that are downloaded, the receipt that ``fl.data.torchvision_files`` writes next to them records what the archives
contained.
"""

from collections.abc import Mapping
from types import MappingProxyType

OFFICIAL: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "digits": {
            "train-images": "4215016c0488433707f098475b8387e3d5c29ac4eaf6c27afa62bbd368c37839",
            "train-labels": "704dda749a60b2f59828343b681eb0bf300a9738520946943df3ddfd530c4e41",
            "test-images": "beb8214a2a768f3da98b5a18e7ef5805c79fed113818a9faee12176dbb930ee7",
            "test-labels": "1becdccb6ef79354e94a2aa220bb39468dac9b9cb36da5ee42edff1263ee5ecf",
        },
        "strokes": {
            "train-images": "b3f5a17b26c606f23c1e5cd911c91ad417de8d586092bd61200874e15d2db869",
            "train-labels": "a03e70550c1825d27a04fcacd7bc59a0df988963ec9c03c287810b7cf787cc68",
            "test-images": "d38fdaaf9d7f115e6cd73b970e80fef4eb142dbab2bf6ccebf4657a858929c2c",
            "test-labels": "19efeabbd5fed476d80e2ce2609cdc76c23b9694a1631c6371599ab362810a91",
        },
        "scribbles": {
            "train-images": "d68728733abdf3b45ca3c132270d4522a33ae5c2286ea4f2a54e85f1ac2dab5e",
            "train-labels": "a03e70550c1825d27a04fcacd7bc59a0df988963ec9c03c287810b7cf787cc68",
            "test-images": "2992922313a1274baa05ce07bcf132c649b8bd05e0a5afb007a97a1c002b166a",
            "test-labels": "19efeabbd5fed476d80e2ce2609cdc76c23b9694a1631c6371599ab362810a91",
        },
        "mnist": {
            "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
        "fashion-mnist": {
            "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        },
    }
)
