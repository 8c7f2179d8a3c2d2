"""What runs a model: torch, or CTranslate2. Import the modules one by one: torch comes with one."""
