mod custom_rule;
mod find;
mod planted;
mod replace;
