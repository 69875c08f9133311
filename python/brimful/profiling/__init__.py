"""What a loader delivers and what it is waited for, measured from outside, for any loader."""
