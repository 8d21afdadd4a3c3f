"""Files as YAML: read strictly, field by field, and written in one canonical form.

fields = yaml_files.Fields(yaml_files.read(data, name="rules.yaml"), file="rules.yaml")
sheet = fields.text("sheet", required=True)
rules = [(r.text("key", required=True), r.text("text")) for r in fields.items("rules", label="rule")]
"""

from factsheets.yaml_files.fields import Fields
from factsheets.yaml_files.reading import LARGEST_FILE, FileRefused, read
from factsheets.yaml_files.writing import write

__all__ = ["LARGEST_FILE", "Fields", "FileRefused", "read", "write"]
