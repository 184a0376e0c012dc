"""What a model can never say: label sets, classes and top-k sets that no input can bring out, with proofs."""

from longtail.audit.certificate import Certificate
from longtail.audit.classes import retrievable, winnable
from longtail.audit.counting import Capacity, capacity, general_position
from longtail.audit.labels import argmaxable
from longtail.audit.proof import Proof, check_certificate
from longtail.audit.result import Audit
from longtail.audit.storing import Certificates, load_certificates, save_certificates

__all__ = [
    "Audit",
    "Capacity",
    "Certificate",
    "Certificates",
    "Proof",
    "argmaxable",
    "capacity",
    "check_certificate",
    "general_position",
    "load_certificates",
    "retrievable",
    "save_certificates",
    "winnable",
]
