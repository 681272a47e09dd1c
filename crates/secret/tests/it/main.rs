mod find;
mod own;
mod replace;
