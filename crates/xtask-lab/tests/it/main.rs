//! What is made from the code, held against the files of the project.

mod generated;
