"""Who relays what servers of a block exchange without a link: all digraphs of a block, as a bound."""
