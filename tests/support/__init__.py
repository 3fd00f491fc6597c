"""What tests of several folders share. README.md says what each module is for."""
