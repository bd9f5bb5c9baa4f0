//! The vocabulary of strew: symbols, labels, selectors, resources, time, random numbers
