"""What a model can never say: label sets, classes and top-k sets that no input can bring out, with proofs."""

from longtail.audit.certificate import Certificate
from longtail.audit.classes import retrievable, winnable
from longtail.audit.counting import Capacity, capacity, general_position
from longtail.audit.labels import argmaxable
from longtail.audit.proof import Proof, check_certificate
from longtail.audit.result import Audit

__all__ = [
    "Audit",
    "Capacity",
    "Certificate",
    "Proof",
    "argmaxable",
    "capacity",
    "check_certificate",
    "general_position",
    "retrievable",
    "winnable",
]
