from .concept import Concept as Concept
from .name_facts import add_names as add_names
from .read_file import FORMATS as FORMATS
from .read_file import is_vocabulary_file as is_vocabulary_file
from .schema import VOCABULARY_SCHEMA as VOCABULARY_SCHEMA
from .vocabulary import Vocabulary as Vocabulary
