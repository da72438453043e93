"""Methods around other methods: one that fits, one after the other, within memory, limited by what is known."""
