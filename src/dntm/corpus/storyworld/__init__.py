"""storyworld: generated stories whose ideal perplexity is known exactly.

grammar  the words, the traits of an entity, and the kinds of phrases that show or change them
ideal    the ideal reader: phrases as tries, exact inference over the hidden traits
story    the stories
"""
