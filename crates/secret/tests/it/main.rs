mod find;
mod own;
mod planted;
mod replace;
